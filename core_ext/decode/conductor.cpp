#include "decode/conductor.h"

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
    for (size_t s = 0; s < pending_.size(); ++s) {
        Pending& pending = pending_[s];
        CpuDevice& device = split_.stages[s]->device();
        const Ticket finished = device.finished();
        while (!pending.empty() && pending.entries[pending.first % 64].first <= finished) {
            const auto& [ticket, done] = pending.entries[pending.first++ % 64];
            schedule_.done(done);
            if (done.kind == Done::Kind::run)
                events_.span(EventKind::sync, device.finished_ns(ticket), static_cast<uint8_t>(s),
                             done.window, 0);
        }
    }
    check_failures();
}

void Conductor::check_failures() {
    const auto check = [](CpuDevice& device) {
        if (device.failed()) throw Error(device.failure());
    };
    for (auto& stage : split_.stages) check(stage->device());
    if (split_.mtp) check(split_.mtp->device());
}

void Conductor::launch(HandOffMode mode) {
    while (const auto action = schedule_.next(mode)) {
        for (const Window& window : schedule_.windows()) {
            if (window.id != action->window) continue;
            const uint64_t staged = now_ns();
            stage_inputs(*action, window);
            const uint64_t launched = now_ns();
            if (events_.on())
                events_.record({staged, launched - staged, window.id, EventKind::stage_inputs,
                                static_cast<uint8_t>(action->stage), static_cast<uint16_t>(window.rows), 0,
                                0});
            submit(action->stage, split_.stages[action->stage]->forward_program(action->slot),
                   {Done::Kind::run, action->stage, action->window, action->slot});
            events_.span(EventKind::launch, launched, static_cast<uint8_t>(action->stage), window.id,
                         window.rows, action->ahead);
        }
    }
}

void Conductor::stage_inputs(const Action& action, const Window& window) {
    ForwardInputs& inputs = split_.stages[action.stage]->forward_inputs(action.slot);
    int& state = state_[action.stage];
    inputs.window = window.id;
    inputs.rows = window.rows;
    inputs.position = window.position;
    inputs.tokens = window.tokens;
    inputs.prompt = window.kind != WindowKind::verify;
    inputs.all_logits = false;
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
    pending.entries[pending.next % 64] = {split_.stages[stage]->device().submit(program), done};
    ++pending.next;
}

void Conductor::commit(const Window& window, int rows) {
    for (int s = 0; s < schedule_.n_stages(); ++s) {
        const Action action = schedule_.commit(window, s, rows);
        CommitInputs& inputs = split_.stages[s]->commit_inputs(action.slot);
        inputs = {window.id, rows, state_[s], (state_[s] + 1) % n_states_, false};
        state_[s] = inputs.to;
        submit(s, split_.stages[s]->commit_program(action.slot),
               {Done::Kind::commit, s, window.id, action.slot});
    }
}

void Conductor::wait() { done_.wait_ge(seen_ + 1, WAIT_BOUND_NS); }

void Conductor::drain() {
    for (;;) {
        note_finished();
        if (!schedule_.in_flight() && (!split_.mtp || split_.mtp->landed())) return;
        wait();
    }
}

void Conductor::abandon() noexcept {
    for (auto& stage : split_.stages) stage->device().cut(schedule_.last_id());
    if (split_.mtp) split_.mtp->device().cut(schedule_.last_id());
    for (const Window& window : schedule_.windows())
        for (int s = 1; s < schedule_.n_stages(); ++s)
            if (window.launched_on(s) && !window.finished_on(s))
                split_.boundaries[s - 1][window.slot]->release(window.id);
    for (size_t s = 0; s < pending_.size(); ++s) {
        Pending& pending = pending_[s];
        for (; !pending.empty(); ++pending.first)
            while (split_.stages[s]->device().finished() < pending.entries[pending.first % 64].first) {
                seen_ = done_.value();
                if (split_.stages[s]->device().finished() < pending.entries[pending.first % 64].first) wait();
            }
    }
    while (split_.mtp && !split_.mtp->landed()) {
        seen_ = done_.value();
        if (!split_.mtp->landed()) wait();
    }
    schedule_.abandon();
    for (auto& stage : split_.stages) stage->device().clear_failure();
    if (split_.mtp) split_.mtp->device().clear_failure();
}

void Conductor::clear_state() {
    for (size_t s = 0; s < state_.size(); ++s) split_.stages[s]->clear_state(state_[s]);
}

}  // namespace strata
