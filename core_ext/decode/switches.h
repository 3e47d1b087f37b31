#pragma once

#include <atomic>
#include <cstdint>

namespace strata {

enum class DraftSource : uint8_t { none, mtp, lookup, replay };

/// The switches as a request goes by them: latched at a verdict, so that no window sees two values.
struct SwitchValues {
    bool overlap = false;
    int pipeline_windows = 0;
    DraftSource draft = DraftSource::mtp;
    float replay_quality = 1;  // share of replayed drafts that are right
    int draft_max = 4;
    float draft_min_p = 0;
    float theta = 0.20f;
    int short_read = 64;
    float rate = 0;       // tokens per second; 0: no cap
    int force_miss = 0;   // every n-th guess is made wrong; 0: none
    int spec_depth = 32;  // guesses stay on so many front stages
    bool chain_ahead =
        true;  // the draft chain runs on ahead of the verdict; false: anew after each kept guess

    bool operator==(const SwitchValues&) const = default;
};

/// The switches as asked for, by any thread at any time. Each is a value of its own: no order between them is
/// promised, and none orders other data, so every access is relaxed.
class Switches {
  public:
    std::atomic<bool> overlap{false};
    std::atomic<int> pipeline_windows{0};
    std::atomic<DraftSource> draft{DraftSource::mtp};
    std::atomic<float> replay_quality{1};
    std::atomic<uint32_t> draft_asked{0};  // counts assignments: asking again starts a stopped drafter
    std::atomic<int> draft_max{4};
    std::atomic<float> draft_min_p{0};
    std::atomic<float> theta{0.20f};
    std::atomic<int> short_read{64};
    std::atomic<float> rate{0};
    std::atomic<int> force_miss{0};
    std::atomic<int> spec_depth{32};
    std::atomic<bool> chain_ahead{true};
    std::atomic<bool> kernel_times{false};   // measured from the next request on
    std::atomic<bool> keep_drafting{false};  // also with a draft layer that accepts nothing
    std::atomic<bool> paused{false};
    std::atomic<uint32_t> steps{0};  // windows let through while paused

    SwitchValues values() const {
        constexpr auto relaxed = std::memory_order_relaxed;
        SwitchValues v;
        v.overlap = overlap.load(relaxed);
        v.pipeline_windows = pipeline_windows.load(relaxed);
        v.draft = draft.load(relaxed);
        v.replay_quality = replay_quality.load(relaxed);
        v.draft_max = draft_max.load(relaxed);
        v.draft_min_p = draft_min_p.load(relaxed);
        v.theta = theta.load(relaxed);
        v.short_read = short_read.load(relaxed);
        v.rate = rate.load(relaxed);
        v.force_miss = force_miss.load(relaxed);
        v.spec_depth = spec_depth.load(relaxed);
        v.chain_ahead = chain_ahead.load(relaxed);
        return v;
    }
};

}  // namespace strata
