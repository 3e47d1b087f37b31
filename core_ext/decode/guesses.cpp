#include <bit>
#include <cmath>

#include "base/error.h"
#include "decode/session.h"

/// Guesses: windows launched on front stages before the one ahead has its verdict.
namespace strata {

constexpr float LOOKUP_ESTIMATE =
    0.75f;  // a stretch copied from earlier text goes on as often as this, by window

static int millionths(float x) { return static_cast<int>(std::lround(std::min(x, 2000.0f) * 1e6f)); }

/// The next guess behind those in flight, where the switches, the limits of the text and the predictions
/// allow one. It assumes that the window ahead is accepted whole and that its bonus is the next prediction.
/// False: not now.
bool Session::build_guess() {
    auto& windows = conductor_.schedule().windows();
    const int in_flight = static_cast<int>(windows.size());
    if (!guessing() || guesses_gated_ || in_flight >= in_force_.pipeline_windows || drafts_.stopped())
        return false;
    const Window& before = windows.back();
    int wanted = wanted_;
    for (const Window& window : windows) wanted -= window.rows;
    const int most = most_rows(in_force_.draft_max, wanted, before.end_position(), p_.context);
    if (most < 1) return false;
    for (int i = 1; i < before.rows; ++i)
        if (ends_text(before.tokens[i])) return false;

    if (drafts_.position_of(taken_) != before.end_position()) bug("[guess] predictions of another position");
    const auto bonus = drafts_.at(taken_);
    if (!bonus || ends_text(bonus->token)) return false;
    const auto count = drafts_.length_from(taken_ + 1, most - 1, in_force_.draft_min_p);
    if (!count) return false;

    float estimate = bonus->probability;
    for (int i = 1; i < before.rows; ++i) estimate *= before.probability[i];
    if (drafts_.source() == DraftSource::lookup) estimate = LOOKUP_ESTIMATE;
    if (!bonus->agreed || !before.drafts_agreed) estimate = 0;

    GuessStats& guesses = counting_.guesses;
    ++guesses.built;
    const bool forced = in_force_.force_miss > 0 && guesses.built % in_force_.force_miss == 0;
    Window& guess = conductor_.schedule().open(WindowKind::verify, before.end_position(), 1);
    guess.fate = WindowFate::guess;
    guess.tokens[0] = forced ? (bonus->token + 1) % p_.model->dims().n_vocab : bonus->token;
    guess.probability[0] = bonus->probability;
    guess.second_choice = bonus->second;
    guess.estimate = estimate;
    guess.forced_miss = forced;
    ++taken_;
    take_drafts(guess, *count);
    record_window(guess);
    p_.events->moment(EventKind::guess_built, HOST_LANE, guess.id, guess.rows, millionths(estimate), forced);
    return true;
}

/// A guess that could be launched is below theta: it takes those behind it along, none of which has been
/// launched, and no other is built before the next verdict.
void Session::gate_guesses(size_t from) {
    auto& windows = conductor_.schedule().windows();
    for (size_t i = from; i < windows.size(); ++i) {
        taken_ -= windows[i].rows;  // the next guess stands where the first of these stood
        ++counting_.guesses.gated;
        p_.events->moment(EventKind::guess_gated, HOST_LANE, windows[i].id, windows[i].rows,
                          millionths(windows[i].estimate));
    }
    conductor_.schedule().drop_from(from);
    guesses_gated_ = true;
}

/// Notes the guesses that stage 0 has been given.
void Session::record_launched_guesses() {
    for (Window& window : conductor_.schedule().windows()) {
        if (!window.guess() || window.counted || !window.launched_on(0)) continue;
        window.counted = true;
        ++counting_.guesses.launched;
        p_.events->moment(EventKind::guess_launched, HOST_LANE, window.id, window.rows, window.depth,
                          millionths(window.estimate));
    }
}

/// Is the window behind the verified one what the verdict says?
bool Session::came_true(const Window& verified, int accepted, int32_t bonus) const {
    const auto& windows = conductor_.schedule().windows();
    if (windows.size() < 2 || !windows[1].launched_on(0)) return false;
    return accepted == verified.rows - 1 && !windows[1].forced_miss && windows[1].tokens[0] == bonus;
}

void Session::judge_miss(const Window& verified, int accepted, int32_t bonus) {
    const auto& windows = conductor_.schedule().windows();
    if (windows.size() < 2 || !windows[1].launched_on(0)) return;
    const Window& guess = windows[1];
    GuessStats& guesses = counting_.guesses;
    MissCause cause = MissCause::forced;
    bool second = false;
    if (accepted < verified.rows - 1) {
        cause = MissCause::drafts_wrong;
        ++guesses.drafts_wrong;
    } else if (guess.forced_miss) {
        ++guesses.forced;
    } else {
        cause = MissCause::bonus_wrong;
        ++guesses.bonus_wrong;
        second = guess.second_choice == bonus;
        guesses.second_choice_right += second;
    }
    p_.events->moment(EventKind::miss, HOST_LANE, verified.id, verified.rows, static_cast<int>(cause),
                      second);
}

/// All guesses from `from` on: rolled back, ended with the text, or late, never having been launched.
void Session::give_up_guesses(size_t from, bool ending) {
    auto& windows = conductor_.schedule().windows();
    GuessStats& guesses = counting_.guesses;
    for (size_t i = from; i < windows.size(); ++i) {
        const Window& window = windows[i];
        if (!window.guess()) continue;  // a prompt's, in an error
        const int launched = std::popcount(window.launched), finished = std::popcount(window.finished);
        const auto note = [&](EventKind kind, int& count) {
            ++count;
            p_.events->moment(kind, HOST_LANE, window.id, window.rows, launched, finished);
        };
        if (launched == 0)
            note(EventKind::guess_late, guesses.late);
        else if (ending)
            note(EventKind::guess_ended, guesses.ended);
        else
            note(EventKind::guess_rolled_back, guesses.rolled_back);
    }
    if (from < windows.size() && windows[from].launched == 0)
        conductor_.schedule().drop_from(from);
    else
        conductor_.drop_from(from);
}

/// The guess behind the verified window, which has left, is the one that the next verdict is about.
void Session::keep_guess(WindowFate after) {
    Window& guess = conductor_.schedule().windows().front();
    guess.fate = after == WindowFate::fresh ? WindowFate::kept_after_fresh : WindowFate::kept_after_kept;
    ++counting_.guesses.kept;
    ++counting_.guesses.kept_at_depth[guess.depth];
    p_.events->moment(EventKind::guess_kept, HOST_LANE, guess.id, guess.rows, std::popcount(guess.finished),
                      static_cast<int>(guess.fate));
}

/// After a kept guess: the predictions go on behind the windows in flight, or anew through them.
void Session::order_more_drafts() {
    auto& windows = conductor_.schedule().windows();
    if (!guessing() || !drafts_.go_by(in_force_)) {
        drafts_.stop();
        for (size_t i = 1; i < windows.size(); ++i)
            if (windows[i].launched == 0) return give_up_guesses(i, false);
        return;
    }
    const uint32_t window = windows.front().id;
    if (in_force_.chain_ahead || in_force_.draft == DraftSource::lookup) {
        drafts_.catch_up(consumed_, window);
    } else {
        in_flight_.clear();
        for (const Window& w : windows)
            for (int i = w.guess() ? 0 : 1; i < w.rows; ++i) in_flight_.push_back(w.tokens[i]);
        drafts_.begin_forced(in_force_, consumed_, in_flight_, window);
        taken_ = static_cast<int>(in_flight_.size());
    }
    want_drafts();
}

}  // namespace strata
