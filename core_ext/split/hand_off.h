#pragma once

#include <atomic>
#include <cstdint>

#include "base/aligned.h"
#include "base/word.h"

namespace strata {

enum class HandOffMode : uint8_t { serial, overlapped };

/// The buffer that carries one window's rows over one boundary, of one slot, with its ready word. The word is
/// an epoch: the id of the window whose payload lies there, never reset.
///
/// The payload is written with plain stores before publish() raises the word (a release); the reader's wait
/// acquires it.
class HandOff {
  public:
    HandOff(int max_rows, int n_embd, uint64_t bound_ns = WAIT_BOUND_NS)
        : rows_(int64_t{1} * max_rows * n_embd), bound_ns_(bound_ns) {}

    float* rows() { return rows_.data(); }  // [rows, n_embd]
    uint64_t size_bytes() const { return rows_.size_bytes(); }

    /// `at_ns`: when the payload is there, by the writer's clock.
    void publish(uint64_t epoch, uint64_t at_ns) noexcept {
        published_ns_.store(at_ns, std::memory_order_relaxed);
        ready_.raise(epoch);
    }
    /// Of the payload that a wait let its reader have: the word's release and acquire order it too.
    uint64_t published_ns() const noexcept { return published_ns_.load(std::memory_order_relaxed); }
    /// The writer is at work: its reader's bound begins anew. Relaxed: a sign of life, nothing hangs on when
    /// it is seen.
    void note_progress() noexcept { progress_.fetch_add(1, std::memory_order_relaxed); }
    /// False when the writer has shown no progress for the bound's running time.
    bool wait(uint64_t epoch) noexcept {
        for (uint32_t seen = progress_.load(std::memory_order_relaxed); !ready_.wait_ge(epoch, bound_ns_);) {
            const uint32_t now = progress_.load(std::memory_order_relaxed);
            if (now == seen) return false;
            seen = now;
        }
        return true;
    }
    uint64_t value() const noexcept { return ready_.value(); }

    /// Lets a reader go that will not be fed: it skips its work. released_ is stored before the word is
    /// raised and read after the wait, so the word's release and acquire order it. Where the payload came
    /// first, the word stands and orders nothing: the reader may skip or work, and nobody wants its rows.
    void release(uint64_t epoch) noexcept {
        released_.store(epoch, std::memory_order_relaxed);
        ready_.raise(epoch);
    }
    bool released(uint64_t epoch) const noexcept {
        return released_.load(std::memory_order_relaxed) == epoch;
    }

  private:
    Buffer<float> rows_;
    const uint64_t bound_ns_;
    Word ready_;
    std::atomic<uint32_t> progress_{0};
    std::atomic<uint64_t> released_{0}, published_ns_{0};
};

}  // namespace strata
