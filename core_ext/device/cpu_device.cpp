#include "device/cpu_device.h"

#include <exception>
#include <system_error>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "trace/event.h"

namespace strata {

std::string CpuSpec::label() const {
    std::string text = "cpu " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    for (size_t i = 0; i < cores.size(); ++i)
        text += (i ? "+" : cores.size() == 1 ? ", core " : ", cores ") + std::to_string(cores[i]);
    const std::string paced = pace.label();
    return paced.empty() ? text : paced + ", " + text;
}

CpuDevice::CpuDevice(const CpuSpec& spec, int lane, Word& done)
    : label_(spec.label()), pace_(Pace::make(spec.pace, lane)), done_(done) {
    try {
        // A program's end must not wait for another's work. The draft layer's steps are shorter than a
        // wake-up: its worker computes them itself.
        const bool apart = has_clock() && lane != DRAFT_LANE;
        team_.emplace(spec.threads, spec.cores,
                      apart                  ? Team::Manner::apart
                      : spec.pace.emulated() ? Team::Manner::courteous
                                             : Team::Manner::plain);
        worker_ = std::thread([this, &spec] {
            pinned_ = pin_thread(spec.cores);
            started_.count_down();
            serve();
        });
    } catch (const std::system_error& error) {
        throw Error("[device] " + label_ + ": the system gave no further thread: " + error.what());
    }
    started_.wait();
}

CpuDevice::~CpuDevice() {
    cut(UINT32_MAX);
    stop_.store(true, std::memory_order_release);
    submitted_.increment();  // one past the last program: the worker sees stop_ there
    worker_.join();
}

Ticket CpuDevice::submit(Program& program) {
    const Ticket ticket = submitted_.value() + 1;
    if (ticket > finished() + QUEUE) bug("[device] more programs queued than a schedule can have in flight");
    queue_[ticket % QUEUE] = static_cast<CpuProgram*>(&program);
    submitted_.raise(ticket);
    return ticket;
}

void CpuDevice::serve() {
    if (pace_) wake_promptly();
    for (Ticket next = 1;; ++next) {
        while (!submitted_.wait_ge(next, WAIT_BOUND_NS)) {
        }
        if (stop_.load(std::memory_order_acquire) && submitted_.value() == next) return;
        note_end(0);
        try {
            queue_[next % QUEUE]->run(*team_);
        } catch (const std::exception& error) {
            keep_failure(error.what());
        }
        ended_ns_[next % QUEUE].store(noted_end_ns_ ? noted_end_ns_ : now_ns(), std::memory_order_relaxed);
        told_ns_[next % QUEUE].store(noted_told_ns_, std::memory_order_relaxed);
        finished_.raise(next);
        done_.increment();
    }
}

void CpuDevice::keep_failure(const char* what) {
    std::lock_guard lock(failure_mutex_);
    if (failure_.empty()) failure_ = what;
    failed_.store(true, std::memory_order_release);
}

std::string CpuDevice::failure() const {
    std::lock_guard lock(failure_mutex_);
    return failure_;
}

void CpuDevice::clear_failure() {
    std::lock_guard lock(failure_mutex_);
    failure_.clear();
    failed_.store(false, std::memory_order_release);
}

}  // namespace strata
