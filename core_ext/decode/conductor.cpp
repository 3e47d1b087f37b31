#include "decode/conductor.h"

#include <algorithm>

#include "base/error.h"

namespace strata {

Conductor::Conductor(Split& split, int n_slots, int n_states, Word& done, EventLane& events)
    : split_(split),
      n_states_(n_states),
      done_(done),
      events_(events),
      schedule_(static_cast<int>(split.stages.size()), n_slots, split.last_window),
      pending_(split.stages.size()),
      state_(split.stages.size(), 0) {}

void Conductor::note_finished() {
    seen_ = done_.value();
    // The last stage first: what finished there was let in by the stages before, whose programs have ended by
    // then or are about to (a ready word is raised within its program).
    for (size_t s = pending_.size(); s-- > 0;) {
        Pending& pending = pending_[s];
        Device& device = split_.stages[s]->device();
        const Ticket finished = device.finished();
        while (!pending.empty() && pending.entries[pending.first % 64].first <= finished) {
            const auto& [ticket, done] = pending.entries[pending.first++ % 64];
            schedule_.done(done);
            if (done.kind != Done::Kind::run) continue;
            events_.not_before(device.told_ns(ticket));
            if (split_.mtp) split_.mtp->order_from(device.told_ns(ticket));
            events_.span(EventKind::sync, device.finished_ns(ticket), static_cast<uint8_t>(s), done.window,
                         0);
        }
    }
    check_failures();
    if (split_.mtp) split_.mtp->pump_catch_up();
}

void Conductor::check_failures() {
    const auto check = [](Device& device) {
        if (device.failed()) throw Error(device.failure());
    };
    for (auto& stage : split_.stages) check(stage->device());
    if (split_.mtp) check(split_.mtp->device());
}

void Conductor::launch(const Limits& limits) {
    while (const auto action = schedule_.next(limits)) {
        if (action->kind == Action::Kind::launch)
            carry_out(*action, limits);
        else
            commit_rows(*action);
    }
}

void Conductor::carry_out(const Action& action, const Limits& limits) {
    const auto& windows = schedule_.windows();
    const Window& window =
        *std::find_if(windows.begin(), windows.end(), [&](const Window& w) { return w.id == action.window; });
    const uint64_t staged = events_.now();
    stage_inputs(action, window,
                 window.kind == WindowKind::verify ? limits.pipelined : limits.prompt_pipelined);
    const uint64_t launched = events_.now();
    if (events_.on())
        events_.record({staged, launched - staged, window.id, EventKind::stage_inputs,
                        static_cast<uint8_t>(action.stage), static_cast<uint16_t>(window.rows), 0, 0});
    submit(action.stage, split_.stages[action.stage]->forward_program(action.slot),
           {Done::Kind::run, action.stage, action.window, action.slot});
    events_.span(EventKind::launch, launched, static_cast<uint8_t>(action.stage), window.id, window.rows,
                 action.ahead);
}

static Arrival arrival(const Action& action, bool pipelined) {
    if (action.stage == 0) return Arrival::staged;
    if (action.ahead) return Arrival::overlapped;
    return pipelined ? Arrival::polled : Arrival::serial;
}

void Conductor::stage_inputs(const Action& action, const Window& window, bool pipelined) {
    ForwardInputs& inputs = split_.stages[action.stage]->forward_inputs(action.slot);
    int& state = state_[action.stage];
    inputs.window = window.id;
    inputs.rows = window.rows;
    inputs.position = window.position;
    inputs.tokens = window.tokens;
    inputs.prompt = window.kind != WindowKind::verify;
    inputs.all_logits = false;
    inputs.guess = window.guess();
    inputs.arrival = arrival(action, pipelined);
    inputs.launched_ns = events_.now();
    inputs.state = state;
    inputs.chunk_tokens = nullptr;
    inputs.advance_to = -1;
    if (window.kind == WindowKind::chunk) {
        inputs.chunk_tokens = chunk_tokens_ + window.position;
        state = inputs.advance_to = (state + 1) % n_states_;
    }
}

void Conductor::submit(int stage, Program& program, const Done& done) {
    Pending& pending = pending_[stage];
    if (pending.next - pending.first == pending.entries.size())
        bug("[conductor] too much outstanding on a stage");
    pending.entries[pending.next % 64] = {split_.stages[stage]->device().submit(program), done};
    ++pending.next;
}

void Conductor::commit_rows(const Action& action) {
    int& state = state_[action.stage];
    CommitInputs& inputs = split_.stages[action.stage]->commit_inputs(action.slot);
    inputs = {action.window, action.rows, state, (state + 1) % n_states_, action.speculative};
    state = inputs.to;
    submit(action.stage, split_.stages[action.stage]->commit_program(action.slot),
           {Done::Kind::commit, action.stage, action.window, action.slot});
}

/// Restore = read the state before the speculative commit, which is still there; replay = commit again from
/// it. Queued behind whatever still runs there: an in-order queue needs no wait.
void Conductor::undo_rows(const Action& action) {
    Stage& stage = *split_.stages[action.stage];
    const CommitInputs& whole = stage.commit_inputs(action.slot);
    stage.undo_inputs(action.slot) = {action.window, action.rows, whole.from, whole.to, false};
    submit(action.stage, stage.undo_program(action.slot),
           {Done::Kind::commit, action.stage, action.window, action.slot});
    ++undone_;
}

void Conductor::settle(const Window& window, int rows) {
    for (int s = 0; s < schedule_.n_stages(); ++s) {
        if (!window.committed_on(s))
            commit_rows(schedule_.commit(window, s, rows));
        else if (rows < window.rows)
            undo_rows(schedule_.undo(window, s, rows));
    }
}

void Conductor::drop_from(size_t index) {
    const auto& windows = schedule_.windows();
    if (index >= windows.size()) return;
    for (int s = 0; s < schedule_.n_stages(); ++s) {
        split_.stages[s]->drop_up_to(schedule_.last_id());
        split_.stages[s]->device().cut_runs(schedule_.last_id());
        // The first of them that was committed here read the state that stands again.
        for (size_t i = index; i < windows.size(); ++i)
            if (windows[i].committed_on(s)) {
                state_[s] = split_.stages[s]->commit_inputs(windows[i].slot).from;
                break;
            }
    }
    for (size_t i = index; i < windows.size(); ++i)
        for (int s = 1; s < schedule_.n_stages(); ++s)
            if (windows[i].launched_on(s) && !windows[i].finished_on(s))
                split_.boundaries[s - 1][windows[i].slot]->release(windows[i].id);
    schedule_.drop_from(index);
}

void Conductor::wait() {
    // Draft outputs that were computed before their time raise no word when they fall due.
    if (const uint64_t due = split_.mtp ? split_.mtp->next_due_ns() : 0) {
        const uint64_t now = now_ns();
        if (due > now) done_.wait_ge(seen_ + 1, due - now);
        return;
    }
    for (uint64_t before = progress(); !done_.wait_ge(seen_ + 1, watchdog_ns_);) {
        const uint64_t now = progress();
        if (now == before) throw Error(stall_report());
        before = now;
    }
}

/// Grows while any program is at work.
uint64_t Conductor::progress() const {
    uint64_t sum = split_.mtp ? split_.mtp->device().progress() : 0;
    for (const auto& stage : split_.stages) sum += stage->device().progress();
    return sum;
}

void Conductor::sleep() { done_.wait_ge(seen_ + 1, WAIT_BOUND_NS); }

/// Every stage that has something to report, with the window and the word that it waits for.
std::string Conductor::stall_report() const {
    std::string text = "[watchdog] nothing has moved for " + std::to_string(watchdog_ns_ / 1'000'000) + " ms";
    for (int s = 0; s < schedule_.n_stages(); ++s) {
        const Pending& pending = pending_[s];
        if (pending.empty()) continue;
        const Done& done = pending.entries[pending.first % 64].second;
        text += "; stage " + std::to_string(s) + ": window " + std::to_string(done.window) + ", slot " +
                std::to_string(done.slot) + (done.kind == Done::Kind::run ? ", forward" : ", commit");
        if (s > 0 && done.kind == Done::Kind::run)
            text += ", ready word of stage " + std::to_string(s - 1) + ": wanted " +
                    std::to_string(done.window) + ", found " +
                    std::to_string(split_.boundaries[s - 1][done.slot]->value());
    }
    if (split_.mtp && !split_.mtp->idle()) text += "; the draft layer has steps outstanding";
    return text;
}

void Conductor::drain() {
    for (;;) {
        note_finished();
        if (!schedule_.in_flight() && (!split_.mtp || split_.mtp->idle())) return;
        wait();
    }
}

void Conductor::abandon() noexcept {
    schedule_.skip_id();  // drafts for the window that was to come
    for (auto& stage : split_.stages) stage->device().cut(schedule_.last_id());
    if (split_.mtp) split_.mtp->device().cut(schedule_.last_id());
    for (auto& stage : split_.stages) stage->drop_up_to(schedule_.last_id());
    // Not by the windows alone: one that was dropped may have a reader outstanding too.
    for (int s = 1; s < schedule_.n_stages(); ++s) {
        const Pending& pending = pending_[s];
        for (uint64_t i = pending.first; i < pending.next; ++i) {
            const Done& done = pending.entries[i % 64].second;
            if (done.kind == Done::Kind::run) split_.boundaries[s - 1][done.slot]->release(done.window);
        }
    }
    const auto wait_until = [&](auto finished) {
        while (seen_ = done_.value(), !finished()) sleep();
    };
    for (size_t s = 0; s < pending_.size(); ++s) {
        Pending& pending = pending_[s];
        for (; !pending.empty(); ++pending.first)
            wait_until([&] {
                return split_.stages[s]->device().finished() >= pending.entries[pending.first % 64].first;
            });
    }
    if (split_.mtp) {
        split_.mtp->cut();
        split_.mtp->forget_owed();
        wait_until([&] { return split_.mtp->idle(); });
        split_.mtp->device().clear_failure();
    }
    schedule_.abandon();
    for (auto& stage : split_.stages) stage->device().clear_failure();
}

void Conductor::clear_state() {
    for (size_t s = 0; s < state_.size(); ++s) split_.stages[s]->clear_state(state_[s]);
}

}  // namespace strata
