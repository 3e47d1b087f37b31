#include "decode/mtp.h"

#include <cstring>

#include "base/error.h"

namespace strata {

Mtp::Mtp(const Architecture& model, int context, int max_rows, KvType kv_type, const CpuSpec& spec,
         const cpu::Kernels& kernels, Word& done, Recorder& recorder)
    : model_(model),
      kv_type_(kv_type),
      context_(context),
      max_rows_(max_rows),
      events_(recorder.add_lane()),
      scratch_(model, max_rows, spec.threads, kernels),
      sampler_(kernels, model.dims().n_vocab) {
    const Dims& d = model.dims();
    hidden_ = Buffer<float>(int64_t{context} * d.n_embd);
    out_ = Buffer<float>(int64_t{max_rows} * d.n_embd);
    workspace_ = Buffer<float>(model.scratch_floats(max_rows));
    cos_ = Buffer<float>(int64_t{max_rows} * (d.n_rot / 2));
    sin_ = Buffer<float>(cos_.size());
    logits_ = Buffer<float>(d.n_vocab);
    const int64_t bytes = int64_t{1} * d.n_kv_heads * context * d.head_dim * (kv_type == KvType::F16 ? 2 : 4);
    cells_k_ = Buffer<uint8_t>(bytes);
    cells_v_ = Buffer<uint8_t>(bytes);
    for (Pass& pass : passes_) pass.mtp = this;
    device_ = std::make_unique<CpuDevice>(spec, DRAFT_LANE, done);
}

uint64_t Mtp::buffer_bytes() const {
    return scratch_.size_bytes() + hidden_.size_bytes() + out_.size_bytes() + workspace_.size_bytes() +
           2 * cos_.size_bytes() + logits_.size_bytes();
}

Mtp::Pass& Mtp::next_pass() {
    // Long catch-ups queue many passes: a place is taken again only when its pass has finished.
    while (last_ticket_ - device_->finished() >= passes_.size() - 1) std::this_thread::yield();
    Pass& pass = passes_[n_passes_++ % passes_.size()];
    pass.step = 0;
    pass.output = -1;
    pass.min_p = 0;
    return pass;
}

/// Cells up to length - 1 in passes of max_rows; the last row of the last gives the first draft.
void Mtp::queue_catch_up(int length, bool drafts, float min_p, uint32_t window) {
    while (caught_up_ < length) {
        Pass& pass = next_pass();
        pass.cell = caught_up_;
        pass.rows = std::min(max_rows_, length - caught_up_);
        pass.window = window;
        caught_up_ += pass.rows;
        if (drafts && caught_up_ == length) {
            pass.output = 0;
            pass.min_p = min_p;
        }
        last_ticket_ = device_->submit(pass);
    }
}

void Mtp::catch_up(int length, uint32_t window) { queue_catch_up(length, false, 0, window); }

void Mtp::chain(int length, int outputs, float min_p, uint32_t window) {
    if (caught_up_ >= length) bug("[draft] a chain was ordered behind rows that are caught up already");
    count_.store(0, std::memory_order_relaxed);  // nothing of the last chain is queued any more
    queue_catch_up(length, outputs > 0, min_p, window);
    for (int step = 1; step < outputs; ++step) {
        Pass& pass = next_pass();
        pass.step = step;
        pass.cell = length - 1 + step;
        pass.rows = 1;
        pass.output = step;
        pass.min_p = min_p;
        pass.window = window;
        last_ticket_ = device_->submit(pass);
    }
}

const float* Mtp::eval_cell(int cell) {
    Pass& pass = next_pass();
    pass.cell = cell;
    pass.rows = 1;
    pass.output = 0;
    caught_up_ = cell + 1;
    last_ticket_ = device_->submit(pass);
    while (!landed()) std::this_thread::yield();
    return logits_.data();
}

void Mtp::run(Team& team, const Pass& pass) {
    if (pass.step == 0 && pass.output == 0) stopped_ = false;
    if (pass.step > 0 && stopped_) return;
    const uint64_t start = now_ns();
    device_->delay(ProgramKind::draft, pass.window);
    struct {
        Mtp* mtp;
        const Pass* pass;
    } job{this, &pass};
    team.run([&job](const Member& me) { job.mtp->run_layer(me, *job.pass); });
    if (pass.output >= 0) pick(pass);
    device_->hold({ProgramKind::draft, pass.window, pass.rows, pass.cell, start});
    if (pass.output >= 0 && !stopped_) count_.store(pass.output + 1, std::memory_order_release);
    const int token = pass.output >= 0 ? outputs_[pass.output].token : -1;
    events_.span(EventKind::draft_step, start, DRAFT_LANE, pass.window, pass.rows, pass.step, token);
}

void Mtp::run_layer(const Member& me, const Pass& pass) {
    const Dims& d = model_.dims();
    // A chain's step reads the row that the pass before it made: always the last row of that pass, kept in
    // place 0.
    const float* hidden = pass.step == 0 ? hidden_.data() + int64_t{pass.cell} * d.n_embd : out_.data();
    const int32_t* tokens = pass.step == 0 ? line_->tokens.data() + pass.cell + 1 : &token_;
    rotary_angles(model_.inv_freq(), pass.cell + 1, pass.rows, me, cos_.data(), sin_.data());
    CpuOps ops(me, scratch_);
    LayerState state;
    state.kv = {cells_k_.data(), cells_v_.data(), kv_type_, context_};
    const Batch batch{pass.rows, pass.cell + 1, cos_.data(), sin_.data()};
    Workspace scratch(workspace_.data(), workspace_.size());
    model_.draft(hidden, tokens, state, batch, pass.cell, out_.data(), scratch, ops);
    if (pass.output < 0) return;
    if (pass.rows > 1) ops.copy(out_.data() + int64_t{pass.rows - 1} * d.n_embd, out_.data(), d.n_embd);
    ops.project({{&model_.draft_head(), logits_.data(), d.n_vocab}}, out_.data(), 1);
}

/// The draft for position cell + rows + 1, by the noise and the settings of the pick that will judge it.
void Mtp::pick(const Pass& pass) {
    const int position = pass.cell + pass.rows + 1;
    int32_t recent[Sampler::PENALTY_WINDOW];
    int count = 0;
    if (sampling_.repeat_penalty != 1) {
        const int known = position - pass.step;  // tokens of the line; the chain's own picks come behind them
        count = std::min(position, Sampler::PENALTY_WINDOW);
        for (int i = 0; i < count; ++i) {
            const int at = position - count + i;
            recent[i] = at < known ? line_->tokens[at] : outputs_[at - known].token;
        }
    }
    Pick& output = outputs_[pass.output];
    output = sampler_.pick(sampling_, logits_.data(), {recent, size_t(count)}, position, true);
    token_ = output.token;
    stopped_ = output.probability < pass.min_p;
}

uint64_t Mtp::fingerprint(int length) const {
    const Dims& d = model_.dims();
    const size_t cell_bytes = d.head_dim * (kv_type_ == KvType::F16 ? 2 : 4);
    uint64_t hash = 0xCBF29CE484222325u;
    for (const auto* cells : {&cells_k_, &cells_v_})
        for (int h = 0; h < d.n_kv_heads; ++h) {
            const uint8_t* base = cells->data() + size_t(h) * context_ * cell_bytes;
            for (size_t i = 0; i < length * cell_bytes; ++i) hash = (hash ^ base[i]) * 0x100000001B3u;
        }
    return hash;
}

}  // namespace strata
