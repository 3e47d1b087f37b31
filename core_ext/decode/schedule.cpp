#include "decode/schedule.h"

#include "base/error.h"

namespace strata {

std::string Action::str() const {
    const std::string place = "s" + std::to_string(stage), name = " w" + std::to_string(window);
    switch (kind) {
        case Kind::launch:
            return place + " launch" + name + (ahead ? " ahead" : "");
        case Kind::commit:
            return place + " commit" + name + " rows=" + std::to_string(rows) +
                   (speculative ? " speculative" : "");
        case Kind::undo:
            break;
    }
    return place + " undo" + name + " rows=" + std::to_string(rows);
}

bool input_promised(const Window& window, int stage, HandOffMode mode) {
    if (stage == 0 || window.finished_on(stage - 1)) return true;
    if (mode == HandOffMode::serial || window.kind == WindowKind::chunk) return false;
    return window.launched_on(stage - 1) && (stage == 1 || window.finished_on(stage - 2));
}

Schedule::Schedule(int n_stages, int n_slots, uint32_t& last_id)
    : n_stages_(n_stages), n_slots_(n_slots), last_id_(last_id), places_(n_stages * (n_slots + CHUNK_SLOTS)) {
    windows_.reserve(MAX_IN_FLIGHT);
}

Window& Schedule::open(WindowKind kind, int position, int rows) {
    if (windows_.size() == MAX_IN_FLIGHT) bug("[schedule] more windows opened than can be in flight");
    Window& window = windows_.emplace_back();
    window.id = ++last_id_;
    window.kind = kind;
    window.fate = kind == WindowKind::verify ? WindowFate::fresh : WindowFate::prompt;
    window.position = position;
    window.rows = rows;
    if (kind == WindowKind::chunk)
        window.slot = n_slots_ + (last_chunk_slot_ = (last_chunk_slot_ + 1) % CHUNK_SLOTS);
    else
        window.slot = last_slot_ = (last_slot_ + 1) % n_slots_;
    return window;
}

bool Schedule::follows(size_t index, int stage) const {
    if (index == 0) return true;
    const Window& before = windows_[index - 1];
    // A chunk commits itself, in the same queue: the one behind needs its launch only.
    return before.kind == WindowKind::chunk ? before.launched_on(stage) : before.finished_on(stage);
}

/// The rows that lie in the hand-off behind `stage` have been read, or nobody will.
bool Schedule::hand_off_free(size_t index, int stage) {
    const int slot = windows_[index].slot;
    for (size_t i = 0; i < index; ++i)
        if (windows_[i].slot == slot && !windows_[i].launched_on(stage + 1)) return false;
    return place(stage + 1, slot).runs == 0;
}

bool Schedule::may_launch(size_t index, int stage, const Limits& limits) {
    const Window& window = windows_[index];
    if (window.launched_on(stage) || (stage > 0 && !window.launched_on(stage - 1))) return false;
    if (window.guess() && (stage + 1 == n_stages_ || stage >= limits.spec_depth)) return false;
    if (window.guess() && stage == 0 && window.estimate < limits.theta) return false;
    if (!follows(index, stage) || !input_promised(window, stage, limits.mode)) return false;
    if (!place(stage, window.slot).idle()) return false;
    return stage + 1 == n_stages_ || hand_off_free(index, stage);
}

std::optional<Action> Schedule::next(const Limits& limits) {
    for (size_t i = 0; i < windows_.size(); ++i)
        for (int stage = 0; stage < n_stages_; ++stage) {
            Window& window = windows_[i];
            // A prompt window's rows all count: it is committed wherever it has been read.
            if (window.kind == WindowKind::prompt && window.finished_on(stage) &&
                !window.committed_on(stage)) {
                window.committed |= 1u << stage;
                return commit(window, stage, window.rows);
            }
            if (!may_launch(i, stage, limits)) continue;
            if (i > 0 && window.kind != WindowKind::chunk && !windows_[i - 1].committed_on(stage)) {
                Window& before = windows_[i - 1];
                before.committed |= 1u << stage;
                Action action = commit(before, stage, before.rows);
                action.speculative = window.guess();
                return action;
            }
            const bool ahead = stage > 0 && !window.finished_on(stage - 1);
            if (stage == 0) window.depth = static_cast<int>(i);
            window.launched |= 1u << stage;
            if (ahead) window.ahead |= 1u << stage;
            ++place(stage, window.slot).runs;
            return Action{Action::Kind::launch, stage, window.id, window.slot, 0, ahead, false};
        }
    return std::nullopt;
}

std::optional<size_t> Schedule::at_gate(const Limits& limits) {
    Limits open = limits;
    open.theta = 0;
    for (size_t i = 0; i < windows_.size(); ++i)
        if (may_launch(i, 0, open)) return may_launch(i, 0, limits) ? std::nullopt : std::optional(i);
    return std::nullopt;
}

Action Schedule::commit(const Window& window, int stage, int rows) {
    ++place(stage, window.slot).commits;
    return {Action::Kind::commit, stage, window.id, window.slot, rows, false, false};
}

Action Schedule::undo(const Window& window, int stage, int rows) {
    ++place(stage, window.slot).commits;
    return {Action::Kind::undo, stage, window.id, window.slot, rows, false, false};
}

void Schedule::done(const Done& done) {
    Place& here = place(done.stage, done.slot);
    if (done.kind == Done::Kind::commit) {
        --here.commits;
        return;
    }
    --here.runs;
    for (Window& window : windows_)
        if (window.id == done.window) window.finished |= 1u << done.stage;
}

void Schedule::close() { windows_.erase(windows_.begin()); }

void Schedule::drop_from(size_t index) {
    // A slot that was never written is the next one's: the ring goes on behind the newest window that was
    // launched.
    for (size_t i = windows_.size();
         i > index && windows_[i - 1].launched == 0 && windows_[i - 1].kind != WindowKind::chunk; --i)
        last_slot_ = (last_slot_ + n_slots_ - 1) % n_slots_;
    windows_.resize(std::min(index, windows_.size()));
}

bool Schedule::in_flight() const {
    if (!windows_.empty()) return true;
    for (const Place& place : places_)
        if (!place.idle()) return true;
    return false;
}

void Schedule::abandon() {
    windows_.clear();
    places_.assign(places_.size(), {});
}

}  // namespace strata
