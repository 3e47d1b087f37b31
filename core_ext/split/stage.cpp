#include "split/stage.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/error.h"

namespace strata {

void rotary_angles(const Rope& rope, int position, int rows, const Member& me, float* cos, float* sin) {
    const int half = static_cast<int>(rope.inv_freq.size());
    const auto [first, last] = me.share(rows);
    for (int r = first; r < last; ++r)
        for (int i = 0; i < half; ++i) {
            const double angle = (position + r) * rope.inv_freq[i];
            cos[int64_t{r} * half + i] = static_cast<float>(rope.magnitude * std::cos(angle));
            sin[int64_t{r} * half + i] = static_cast<float>(rope.magnitude * std::sin(angle));
        }
}

Stage::Stage(const Architecture& model, const StageShape& shape, const CpuSpec& spec,
             const cpu::Kernels& kernels, Word& done, Recorder& recorder)
    : model_(model),
      shape_(shape),
      events_(recorder.add_lane()),
      scratch_(model, std::max(MAX_WINDOW_ROWS, shape.chunk), spec.threads, kernels) {
    const Dims& d = model.dims();
    const int max_rows = std::max(MAX_WINDOW_ROWS, shape.chunk);
    workspace_ = Buffer<float>(model.scratch_floats(max_rows));
    x_ = Buffer<float>(int64_t{1} * max_rows * d.n_embd);
    cos_ = Buffer<float>(int64_t{1} * max_rows * (d.n_rot / 2));
    sin_ = Buffer<float>(cos_.size());

    const int64_t kv_bytes =
        int64_t{1} * d.n_kv_heads * shape.context * d.head_dim * (shape.kv_type == KvType::F16 ? 2 : 4);
    for (int layer = shape.first_layer; layer <= shape.last_layer; ++layer) {
        weight_bytes_ += model.layer_bytes(layer);
        if (model.kind(layer) == LayerKind::delta) {
            index_in_kind_.push_back(n_delta_++);
        } else {
            index_in_kind_.push_back(static_cast<int>(cells_.size()));
            cells_.push_back({Buffer<uint8_t>(kv_bytes), Buffer<uint8_t>(kv_bytes)});
        }
    }
    if (shape.last()) weight_bytes_ += model.head().row_bytes * model.head().n_out;
    if (shape.last())
        for (int i = 0; i < spec.threads; ++i) samplers_.emplace_back(kernels, d.n_vocab);
    device_ = std::make_unique<CpuDevice>(spec, shape.index, done);
}

// ---- memory

void Stage::allocate_windows(int n_slots, int n_states) {
    const Dims& d = model_.dims();
    shape_.n_slots = n_slots;
    shape_.n_states = n_states;
    for (int i = 0; i < n_states; ++i) states_.emplace_back(state_floats());
    verifiers_.resize(n_slots + CHUNK_SLOTS);
    for (int slot = 0; slot < static_cast<int>(verifiers_.size()); ++slot) {
        Verifier& v = verifiers_[slot];
        v.run_forward.stage = v.run_commit.stage = v.run_undo.stage = this;
        v.run_forward.slot = v.run_commit.slot = v.run_undo.slot = slot;
        v.run_undo.undo = true;
        v.records = Buffer<float>(record_floats(slot_rows(slot)));
        if (!shape_.last()) continue;
        if (!is_chunk(slot)) v.logits = Buffer<float>(int64_t{MAX_WINDOW_ROWS} * d.n_vocab);
        v.own_hidden = Buffer<float>(int64_t{1} * slot_rows(slot) * d.n_embd);
    }
}

uint64_t Stage::window_bytes(int n_slots, int n_states) const {
    const Dims& d = model_.dims();
    // Behind each row: the residual row handed on, or the last stage's hidden row.
    const auto rows = [&](int n) { return record_floats(n) + int64_t{n} * d.n_embd; };
    const int64_t logits = shape_.last() ? int64_t{MAX_WINDOW_ROWS} * d.n_vocab : 0;
    const int64_t floats = n_slots * (rows(MAX_WINDOW_ROWS) + logits) + CHUNK_SLOTS * rows(shape_.chunk) +
                           n_states * state_floats();
    return floats * sizeof(float);
}

DeltaState Stage::delta_state(int state, int delta_index) {
    const DeltaShape& d = model_.dims().delta;
    float* base = states_[state].data() + delta_index * (d.state_floats() + d.history_floats());
    return {base, base + d.state_floats()};
}

LayerState Stage::layer_state(int layer, const Verifier& verifier, int slot) {
    const Dims& d = model_.dims();
    const int index = index_in_kind_[layer - shape_.first_layer];
    LayerState state;
    if (model_.kind(layer) == LayerKind::delta) {
        state.delta = delta_state(verifier.forward.state, index);
        const int rows = slot_rows(slot);
        state.record = d.delta.record_at(
            const_cast<float*>(verifier.records.data()) + index * d.delta.record_floats(rows), rows);
        if (verifier.forward.advance_to >= 0) state.advance = delta_state(verifier.forward.advance_to, index);
    } else {
        state.kv = {cells_[index].k.data(), cells_[index].v.data(), shape_.kv_type, shape_.context};
    }
    return state;
}

void Stage::clear_state(int state) { std::memset(states_[state].data(), 0, states_[state].size_bytes()); }

static uint64_t fnv1a(uint64_t hash, const void* data, size_t size) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001B3u;
    return hash;
}

std::vector<uint64_t> Stage::fingerprint(int state, int length) const {
    const Dims& d = model_.dims();
    const int64_t delta_floats = d.delta.state_floats() + d.delta.history_floats();
    const size_t cell_bytes = d.head_dim * (shape_.kv_type == KvType::F16 ? 2 : 4);
    std::vector<uint64_t> hashes;
    for (int layer = shape_.first_layer; layer <= shape_.last_layer; ++layer) {
        const int index = index_in_kind_[layer - shape_.first_layer];
        uint64_t hash = 0xCBF29CE484222325u;
        if (model_.kind(layer) == LayerKind::delta)
            hash = fnv1a(hash, states_[state].data() + index * delta_floats, delta_floats * sizeof(float));
        else
            for (const Buffer<uint8_t>* cells : {&cells_[index].k, &cells_[index].v})
                for (int h = 0; h < d.n_kv_heads; ++h)
                    hash = fnv1a(hash, cells->data() + size_t(h) * shape_.context * cell_bytes,
                                 length * cell_bytes);
        hashes.push_back(hash);
    }
    return hashes;
}

uint64_t Stage::kv_bytes() const {
    uint64_t total = 0;
    for (const Cells& cells : cells_) total += cells.k.size_bytes() + cells.v.size_bytes();
    return total;
}

uint64_t Stage::state_bytes() const {
    uint64_t total = 0;
    for (const auto& state : states_) total += state.size_bytes();
    return total;
}

uint64_t Stage::slot_bytes() const {
    uint64_t total = 0;
    for (const Verifier& v : verifiers_)
        total += v.records.size_bytes() + v.logits.size_bytes() + v.own_hidden.size_bytes();
    if (out_)
        for (const auto& hand_off : *out_) total += hand_off->size_bytes();
    return total;
}

uint64_t Stage::buffer_bytes() const {
    return scratch_.size_bytes() + workspace_.size_bytes() + x_.size_bytes() + 2 * cos_.size_bytes() +
           slot_bytes();
}

// ---- programs

/// False if nobody wants the window any more.
bool Stage::wait_for_input(int slot) {
    const ForwardInputs& inputs = verifiers_[slot].forward;
    HandOff& hand_off = *(*in_)[slot];
    if (!hand_off.wait(inputs.window))
        throw Error("[stage " + std::to_string(shape_.index) + "] window " + std::to_string(inputs.window) +
                    ": no progress for " + std::to_string(WAIT_BOUND_NS / 1'000'000'000) + " s of stage " +
                    std::to_string(shape_.index - 1) + ", whose ready word is awaited" + ", slot " +
                    std::to_string(slot) + ": wanted " + std::to_string(inputs.window) + ", found " +
                    std::to_string(hand_off.value()));
    return !hand_off.released(inputs.window);
}

/// Waits for the input and for what its hand-off takes: when the program has had it. Nothing if nobody wants
/// the window any more.
std::optional<uint64_t> Stage::arrive(int slot, uint64_t begun_ns) {
    const ForwardInputs& inputs = verifiers_[slot].forward;
    const auto travelled = [&](uint64_t since_ns) {
        return device_->hold({ProgramKind::hand_off, inputs.window, inputs.rows, inputs.position, since_ns,
                              inputs.launched_ns, inputs.arrival});
    };
    if (!in_) return travelled(inputs.launched_ns);
    const bool fed = wait_for_input(slot);
    const uint64_t there_ns = fed ? travelled((*in_)[slot]->published_ns()) : now_ns();
    if (events_.on())
        events_.record({begun_ns, std::max(there_ns, begun_ns) - begun_ns, inputs.window,
                        EventKind::wait_ready, static_cast<uint8_t>(shape_.index),
                        static_cast<uint16_t>(inputs.rows), shape_.index - 1, 0});
    if (!fed) return std::nullopt;
    return there_ns;
}

void Stage::meet_injections(const ForwardInputs& inputs) {
    int64_t wanted = injected_.load(std::memory_order_relaxed);
    if (wanted >= 0 && (wanted == 0 || wanted == inputs.window) &&
        injected_.compare_exchange_strong(wanted, -1))
        throw Error("[stage " + std::to_string(shape_.index) + "] window " + std::to_string(inputs.window) +
                    ": an error was injected here");
    if (stalls_.load(std::memory_order_relaxed) && stalls_.exchange(false))
        while (!dropped(inputs)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Wait for the hand-off, run the layers, publish to the next stage or pick. A dropped window does less of
/// it, but its ready word is raised all the same.
void Stage::forward(Team& team, int slot) {
    Verifier& v = verifiers_[slot];
    const ForwardInputs& inputs = v.forward;
    const ProgramKind kind = is_chunk(slot) ? ProgramKind::chunk : ProgramKind::forward;
    const uint64_t begun = now_ns();
    device_->delay(kind, inputs.window);
    const std::optional<uint64_t> arrived = arrive(slot, begun);
    if (!arrived) return;
    meet_injections(inputs);

    const uint64_t start = now_ns();
    device_->delay(kind, inputs.window);
    struct {
        Stage* stage;
        int slot;
    } job{this, slot};
    if (times_kernels_) kernel_times_.count_program(inputs.rows);
    team.run([&job](const Member& me) { job.stage->run_layers(me, job.slot); });
    model_.file().require_unchanged();
    if (device_->has_clock())
        finish(slot, *arrived, std::max(*arrived, begun));
    else
        finish(slot, start, start);
}

/// What comes when the layers have run: the payload and its word, or the way of the picks back to the host.
/// `arrived_ns`: the program had its input; `begun_ns`: its run is shown since.
void Stage::finish(int slot, uint64_t arrived_ns, uint64_t begun_ns) {
    const ForwardInputs& inputs = verifiers_[slot].forward;
    const ProgramKind kind = is_chunk(slot) ? ProgramKind::chunk : ProgramKind::forward;
    const auto hold = [&](ProgramKind part, uint64_t since_ns) {
        return device_->hold({part, inputs.window, inputs.rows, inputs.position, since_ns});
    };
    // By the device's clock; one without is read again when all is done.
    const auto record = [&](EventKind event, uint64_t from_ns, uint64_t to_ns, int a = 0, int b = 0) {
        if (!device_->has_clock()) to_ns = now_ns();
        if (events_.on())
            events_.record({from_ns, std::max(from_ns, to_ns) - from_ns, inputs.window, event,
                            static_cast<uint8_t>(shape_.index), static_cast<uint16_t>(inputs.rows), a, b});
    };
    uint64_t ended = hold(kind, arrived_ns);
    if (out_) {
        const uint64_t published = ended;
        ended = hold(ProgramKind::publish, published);
        (*out_)[slot]->publish(inputs.window, ended);
        record(EventKind::publish, published, ended);
    }
    record(kind == ProgramKind::chunk ? EventKind::prefill_chunk : EventKind::run, begun_ns, ended,
           inputs.position, inputs.prompt);
    if (!device_->has_clock()) ended = now_ns();
    device_->note_end(ended);
    if (shape_.last() && !inputs.prompt) device_->note_end(ended, hold(ProgramKind::verdict, ended));
}

/// The whole team stops, or none of it: member 0 looks, the others go by what it saw.
bool Stage::stop_here(const Member& me, const ForwardInputs& inputs) {
    if (me.index == 0) stops_ = dropped(inputs);
    me.meet();
    return stops_;
}

void Stage::note_progress(int slot) {
    device_->note_progress();
    if (out_) (*out_)[slot]->note_progress();
}

void Stage::run_layers(const Member& me, int slot) {
    Verifier& v = verifiers_[slot];
    const ForwardInputs& inputs = v.forward;
    const Dims& d = model_.dims();
    const int64_t n = int64_t{inputs.rows} * d.n_embd;
    CpuOps ops(me, scratch_, times_of(me), inputs.rows);
    const Batch batch{inputs.rows, inputs.position, cos_.data(), sin_.data()};
    float* x = x_.data();

    rotary_angles(model_.rope(), inputs.position, inputs.rows, me, cos_.data(), sin_.data());
    ops.note(KernelKind::other);
    if (in_)
        ops.copy((*in_)[slot]->rows(), x, n);
    else
        ops.embed(model_.embedding(), inputs.chunk_tokens ? inputs.chunk_tokens : inputs.tokens.data(),
                  inputs.rows, x);
    for (int layer = shape_.first_layer; layer <= shape_.last_layer; ++layer) {
        if (inputs.guess && stop_here(me, inputs)) return;
        if (me.index == 0) note_progress(slot);
        LayerState state = layer_state(layer, v, slot);
        ops.note(KernelKind::other);
        model_.layer(layer, state, batch, x, Workspace(workspace_.data(), workspace_.size()), ops);
    }
    if (out_) {
        if (me.index == 0) device_->delay(ProgramKind::publish, inputs.window);
        ops.copy(x, (*out_)[slot]->rows(), n);
    } else {
        run_head(me, v, x, ops);
    }
}

/// Output norm, head, picks: what a row needs once it has left the last layer.
void Stage::run_head(const Member& me, Verifier& v, const float* x, CpuOps& ops) {
    const Dims& d = model_.dims();
    const int rows = v.forward.rows;
    float* hidden = hidden_by_position_ ? hidden_by_position_ + int64_t{v.forward.position} * d.n_embd
                                        : v.own_hidden.data();
    if (me.index == 0) v.hidden = hidden;
    const bool head = v.forward.all_logits || !v.forward.prompt;
    if (!head && !hidden_by_position_) return;
    ops.norm(x, model_.output_norm(), rows, d.n_embd, d.norm_eps, hidden, 0);
    if (!head) return;
    CpuOps(me, scratch_).project({{&model_.head(), v.logits.data(), d.n_vocab, true}}, hidden, rows);
    ops.note(KernelKind::head);
    if (!v.forward.all_logits) pick_rows(me, v);
    if (times_kernels_) me.meet();  // or the time noted would be one member's rows
    ops.note(KernelKind::pick);
}

/// The tokens that penalties see at row r: the line up to row 0, then the rows before r and r itself.
static int recent_tokens(const TokenLine& line, const ForwardInputs& inputs, int row, int32_t* recent) {
    const int total = inputs.position + row + 1, count = std::min(total, Sampler::PENALTY_WINDOW);
    for (int i = 0; i < count; ++i) {
        const int position = total - count + i;
        recent[i] =
            position < inputs.position ? line.tokens[position] : inputs.tokens[position - inputs.position];
    }
    return count;
}

void Stage::pick_rows(const Member& me, Verifier& v) {
    const int n_vocab = model_.dims().n_vocab;
    const auto [first, last] = me.share(v.forward.rows);
    int32_t recent[Sampler::PENALTY_WINDOW];
    for (int r = first; r < last; ++r) {
        const int count = sampling_.repeat_penalty != 1 ? recent_tokens(*line_, v.forward, r, recent) : 0;
        v.picks[r] = samplers_[me.index]
                         .pick(sampling_, v.logits.data() + int64_t{r} * n_vocab, {recent, size_t(count)},
                               v.forward.position + r + 1, false)
                         .token;
    }
}

/// to = from, advanced by the first rows that the slot's window recorded. An undo is the same with the state
/// before.
void Stage::commit(Team& team, int slot, bool undo) {
    const CommitInputs& inputs = undo ? verifiers_[slot].undo : verifiers_[slot].commit;
    const ProgramKind kind = undo ? ProgramKind::undo : ProgramKind::commit;
    const uint64_t start = now_ns();
    device_->delay(kind, inputs.window);
    if (n_delta_) {
        struct {
            Stage* stage;
            const CommitInputs* inputs;
            int slot;
        } job{this, &inputs, slot};
        team.run([&job](const Member& me) {
            Stage& stage = *job.stage;
            Verifier& v = stage.verifiers_[job.slot];
            const DeltaShape& d = stage.model_.dims().delta;
            CpuOps ops(me, stage.scratch_, stage.times_of(me), job.inputs->rows);
            for (int i = 0; i < stage.n_delta_; ++i)
                ops.delta_commit(
                    d, stage.delta_state(job.inputs->from, i), stage.delta_state(job.inputs->to, i),
                    d.record_at(v.records.data() + i * d.record_floats(stage.slot_rows(job.slot)),
                                stage.slot_rows(job.slot)),
                    job.inputs->rows);
        });
    }
    device_->hold({kind, inputs.window, inputs.rows, 0, start});
    events_.span(undo ? EventKind::undo : EventKind::commit, start, shape_.index, inputs.window, inputs.rows,
                 0, inputs.speculative);
}

}  // namespace strata
