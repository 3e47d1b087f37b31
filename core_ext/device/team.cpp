#include "device/team.h"

#include "base/cpu.h"

namespace strata {

Team::Team(int n_threads, std::vector<int> cores) : barrier_(n_threads), cores_(std::move(cores)) {
    for (int i = 0; i < n_threads; ++i) members_.push_back({i, n_threads, &barrier_});
    try {
        for (int i = 1; i < n_threads; ++i) threads_.emplace_back([this, i] { serve(i); });
    } catch (...) {  // the system's limit: those that started are joined
        stop();
        throw;
    }
}

Team::~Team() { stop(); }

void Team::stop() {
    job_ = nullptr;
    round_.increment();
    for (auto& thread : threads_) thread.join();
}

void Team::run(const std::function<void(const Member&)>& job) {
    if (members_.size() > 1) {
        job_ = &job;
        round_.increment();
    }
    job(members_[0]);
    barrier_.wait();
}

void Team::serve(int index) {
    pin_thread(cores_);
    for (uint64_t round = 1;; ++round) {
        while (!round_.wait_ge(round, WAIT_BOUND_NS)) {
        }
        const auto* job = job_;
        if (!job) return;
        (*job)(members_[index]);
        barrier_.wait();
    }
}

}  // namespace strata
