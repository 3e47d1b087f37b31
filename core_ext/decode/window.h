#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "split/stage.h"
#include "trace/event.h"

namespace strata {

enum class WindowKind : uint8_t {
    verify,  // row 0 and drafts; picks, a verdict
    prompt,  // up to 8 rows of a short prompt rest; all committed, no picks
    chunk,   // many rows of a prompt; commits itself
};

/// T rows at positions position .. position + rows - 1 on their way through the stages. Plain data.
struct Window {
    uint32_t id = 0;  // never reused: the epoch of its hand-offs
    WindowKind kind = WindowKind::verify;
    WindowFate fate = WindowFate::fresh;
    int slot = 0;
    int position = 0;
    int rows = 0;
    std::array<int32_t, MAX_WINDOW_ROWS> tokens{};  // row 0, then drafts
    std::array<float, MAX_WINDOW_ROWS>
        probability{};  // of each draft; [0]: of a guess's row 0, the guessed bonus
    // of a guess
    float estimate = 0;          // that it is kept, given what is ahead of the window ahead comes true
    int32_t second_choice = -1;  // the draft's second choice for row 0
    bool drafts_agreed = true;   // no draft was forced on the source against its own pick
    bool counted = false;        // as launched
    bool forced_miss = false;    // row 0 was made wrong on purpose
    int depth = 0;               // windows ahead of it when it was launched
    // bit s: stage s
    uint32_t launched = 0;
    uint32_t finished = 0;
    uint32_t ahead = 0;      // launched before its input was there
    uint32_t committed = 0;  // all its rows, before its verdict

    bool guess() const { return fate == WindowFate::guess; }
    bool launched_on(int stage) const { return launched >> stage & 1; }
    bool finished_on(int stage) const { return finished >> stage & 1; }
    bool committed_on(int stage) const { return committed >> stage & 1; }
    int end_position() const { return position + rows; }
};

/// a: the number of leading drafts equal to the picks. drafts [T-1] = rows 1.., picks [T].
inline int accept(std::span<const int32_t> drafts, std::span<const int32_t> picks) {
    int a = 0;
    while (a < static_cast<int>(drafts.size()) && drafts[a] == picks[a]) ++a;
    return a;
}

/// The tokens of a verdict that count: picks 0 .. a, cut after the first end token and at the tokens still
/// wanted.
inline int count_tokens(std::span<const int32_t> picks, int accepted, std::span<const int32_t> end_tokens,
                        int wanted) {
    const int most = std::min(accepted + 1, wanted);
    for (int i = 0; i < most; ++i)
        if (std::find(end_tokens.begin(), end_tokens.end(), picks[i]) != end_tokens.end()) return i + 1;
    return most;
}

/// T at most: a window never has more rows than tokens are wanted, nor than fit the context.
inline int most_rows(int draft_max, int wanted, int position, int context) {
    return std::min({draft_max + 1, MAX_WINDOW_ROWS, wanted, context - position});
}

}  // namespace strata
