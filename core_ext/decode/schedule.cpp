#include "decode/schedule.h"

#include "base/error.h"

namespace strata {

std::string Action::str() const {
    const std::string place = "s" + std::to_string(stage), name = " w" + std::to_string(window);
    if (kind == Kind::commit) return place + " commit" + name + " rows=" + std::to_string(rows);
    return place + " launch" + name + (ahead ? " ahead" : "");
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

bool Schedule::may_launch(size_t index, int stage, HandOffMode mode) {
    const Window& window = windows_[index];
    if (window.launched_on(stage) || (stage > 0 && !window.launched_on(stage - 1))) return false;
    if (index > 0) {
        // Chunks flow one behind the other; a window waits until those ahead are gone.
        if (window.kind != WindowKind::chunk) return false;
        if (!windows_[index - 1].launched_on(stage)) return false;
    }
    if (!input_promised(window, stage, mode)) return false;
    const Place& here = place(stage, window.slot);
    if (here.runs || here.commits) return false;
    return stage + 1 == n_stages_ || place(stage + 1, window.slot).runs == 0;
}

std::optional<Action> Schedule::next(HandOffMode mode) {
    for (size_t i = 0; i < windows_.size(); ++i)
        for (int stage = 0; stage < n_stages_; ++stage) {
            if (!may_launch(i, stage, mode)) continue;
            Window& window = windows_[i];
            const bool ahead = stage > 0 && !window.finished_on(stage - 1);
            window.launched |= 1u << stage;
            if (ahead) window.ahead |= 1u << stage;
            ++place(stage, window.slot).runs;
            return Action{Action::Kind::launch, stage, window.id, window.slot, 0, ahead};
        }
    return std::nullopt;
}

Action Schedule::commit(const Window& window, int stage, int rows) {
    ++place(stage, window.slot).commits;
    return {Action::Kind::commit, stage, window.id, window.slot, rows, false};
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

bool Schedule::in_flight() const {
    if (!windows_.empty()) return true;
    for (const Place& place : places_)
        if (place.runs || place.commits) return true;
    return false;
}

void Schedule::abandon() {
    windows_.clear();
    places_.assign(places_.size(), {});
}

}  // namespace strata
