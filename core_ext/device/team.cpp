#include "device/team.h"

#include "base/cpu.h"

namespace strata {

Team::Team(int n_threads, std::vector<int> cores, Manner manner)
    : barrier_(n_threads), cores_(std::move(cores)), apart_(manner == Manner::apart) {
    for (int i = 0; i < n_threads; ++i)
        members_.push_back({i, n_threads, &barrier_, manner != Manner::plain});
    try {
        for (int i = apart_ ? 0 : 1; i < n_threads; ++i) threads_.emplace_back([this, i] { serve(i); });
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
    if (!threads_.empty()) {
        job_ = &job;
        round_.increment();
    }
    if (apart_) {
        while (!ended_.wait_ge(round_.value(), WAIT_BOUND_NS, 0)) {
        }
        return;
    }
    job(members_[0]);
    barrier_.wait();
}

void Team::serve(int index) {
    pin_thread(cores_);
    if (apart_) make_way();
    for (uint64_t round = 1;; ++round) {
        while (!round_.wait_ge(round, WAIT_BOUND_NS)) {
        }
        const auto* job = job_;
        if (!job) return;
        (*job)(members_[index]);
        barrier_.wait();
        if (apart_ && index == 0) ended_.raise(round);
    }
}

}  // namespace strata
