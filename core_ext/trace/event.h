#pragma once

#include <cstdint>

namespace strata {

/// What happened. The numbers are part of recordings: add at the end, never renumber. `a` and `b` as noted;
/// "span" has a duration, the others are moments. One window id counts windows and prefill chunks alike and
/// is never reused.
enum class EventKind : uint8_t {
    none = 0,
    // on a stage (recorded by its worker)
    run = 1,            // span: a window's program, after its wait; a = position, b = 1 if a prompt window
    wait_ready = 2,     // span: the program waits for the ready word of the stage before it
    publish = 3,        // span: payload and ready word to the next stage (inside run)
    commit = 4,         // span: rows = rows committed; b = 1 if all rows before a verdict (speculative)
    undo = 5,           // span: restore and replay; rows = rows committed anew
    snapshot = 6,       // span
    prefill_chunk = 7,  // span: a chunk's program, after its wait; a = position
    // on the draft layer's lane (stage = DRAFT_LANE)
    draft_step = 8,  // span: a = step (0 = catch-up with true rows), b = token drafted (-1: none), rows =
                     // rows caught up
    // on the host (recorded by the control thread; stage = the stage concerned, or HOST_LANE)
    stage_inputs = 9,  // span: inputs staged for (stage, window)
    launch = 10,   // span: program handed to the device; a = 1 if launched ahead of its input (overlapped)
    sync = 11,     // span: from the end of the stage's program to the host noticing it
    verdict = 12,  // span: host work of a verdict; rows = T, a = accepted drafts, b = tokens emitted
    window = 13,   // a window was built: rows = T, a = position, b = WindowFate
    // a draft of that window: rows = its index 1..T-1 (0: the guessed bonus), a = token, b = probability in
    // millionths
    draft_token = 14,
    token = 15,  // a token was emitted: a = token, b = its position
    // what became of a guess; rows = T
    guess_built = 16,        // a = estimate in millionths, b = 1 if forced to miss
    guess_gated = 17,        // a = estimate
    guess_launched = 18,     // on stage 0; a = windows ahead of it, b = estimate
    guess_kept = 19,         // a = front stages finished, b = the WindowFate that it has from now on
    guess_rolled_back = 20,  // a = stages launched on, b = front stages finished
    guess_late = 21,         // not launched before the verdict
    guess_ended = 22,        // in flight when the text ended; a = stages launched on
    toggle = 23,         // a switch took effect: a = SwitchId, b = new value (theta, min_p: in millionths)
    throttle = 24,       // span: held back by --rate
    request_begin = 25,  // window = request number; a = prompt tokens, b = of them cached
    request_end = 26,    // a = Finish, b = tokens generated
    error = 27,          // stage = where
    paused = 28,         // span: held by the user (pause or step)
    // a verified window whose guess is not kept: a = MissCause, b = 1 if the draft's second choice was the
    // bonus
    miss = 29,
};

constexpr uint8_t DRAFT_LANE = 254;
constexpr uint8_t HOST_LANE = 255;

enum class WindowFate : uint8_t {
    fresh = 0,
    kept_after_fresh = 1,
    kept_after_kept = 2,
    prompt = 3,
    guess = 4
};
enum class MissCause : uint8_t { drafts_wrong = 1, bonus_wrong = 2, forced = 3 };
enum class Finish : uint8_t { running = 0, stop = 1, length = 2, context = 3, cancel = 4, error = 5 };
enum class SwitchId : uint8_t {
    overlap = 0,
    pipeline_windows = 1,
    draft = 2,
    draft_max = 3,
    draft_min_p = 4,
    theta = 5,
    short_read = 6,
    rate = 7,
    force_miss = 8,
    spec_depth = 9,
    pipeline_log = 10,
    chain_ahead = 11,
};

/// Times are nanoseconds of the steady clock.
struct Event {
    uint64_t start_ns = 0;
    uint64_t dur_ns = 0;
    uint32_t window = 0;
    EventKind kind = EventKind::none;
    uint8_t stage = HOST_LANE;
    uint16_t rows = 0;
    int32_t a = 0;
    int32_t b = 0;
};
static_assert(sizeof(Event) == 32);

}  // namespace strata
