#include "decode/mtp.h"

#include <bit>
#include <cstring>
#include <thread>

#include "base/error.h"

namespace strata {

Mtp::Mtp(const Architecture& model, int context, int max_rows, int max_ahead, KvType kv_type,
         const CpuSpec& spec, const cpu::Kernels& kernels, Word& done, Recorder& recorder)
    : model_(model),
      kv_type_(kv_type),
      context_(context),
      max_rows_(max_rows),
      events_(recorder.add_lane()),
      scratch_(model, max_rows, spec.threads, kernels),
      sampler_(kernels, model.dims().n_vocab),
      outputs_(std::bit_ceil(static_cast<size_t>(max_ahead + Sampler::PENALTY_WINDOW))) {
    const Dims& d = model.dims();
    hidden_ = Buffer<float>(int64_t{context} * d.n_embd);
    out_ = Buffer<float>(int64_t{max_rows} * d.n_embd);
    row_ = Buffer<float>(d.n_embd);
    workspace_ = Buffer<float>(model.scratch_floats(max_rows));
    cos_ = Buffer<float>(int64_t{max_rows} * (d.n_rot / 2));
    sin_ = Buffer<float>(cos_.size());
    logits_ = Buffer<float>(d.n_vocab);
    const int64_t bytes = int64_t{1} * d.n_kv_heads * context * d.head_dim * (kv_type == KvType::F16 ? 2 : 4);
    cells_k_ = Buffer<uint8_t>(bytes);
    cells_v_ = Buffer<uint8_t>(bytes);
    forced_.reserve(outputs_.size());
    for (Pass& pass : passes_) pass.mtp = this;
    device_ = std::make_unique<CpuDevice>(spec, DRAFT_LANE, done);
}

uint64_t Mtp::buffer_bytes() const {
    return scratch_.size_bytes() + hidden_.size_bytes() + out_.size_bytes() + row_.size_bytes() +
           workspace_.size_bytes() + 2 * cos_.size_bytes() + logits_.size_bytes();
}

// ---- the control thread

Mtp::Pass& Mtp::next_pass(uint32_t window) {
    if (!room()) bug("[draft] more passes queued than there are places");
    Pass& pass = passes_[n_passes_++ % passes_.size()];
    pass.step = false;
    pass.output = pass.forced = -1;
    pass.stop_below = 0;
    pass.chain = chain_.load(std::memory_order_relaxed);
    pass.window = window;
    pass.ordered_ns = std::max(now_ns(), order_from_ns_);
    return pass;
}

/// The pass gives the chain's next output.
void Mtp::prepare_output(Pass& pass) {
    pass.output = ordered_++;
    if (pass.output < static_cast<int>(forced_.size())) pass.forced = forced_[pass.output];
    pass.stop_below = stop_below_;
}

/// In passes of max_rows; the last row of the last gives a chain's first output.
void Mtp::pump_catch_up() {
    while (caught_up_ < owed_ && room()) {
        Pass& pass = next_pass(owed_window_);
        pass.cell = caught_up_;
        pass.rows = std::min(max_rows_, owed_ - caught_up_);
        caught_up_ += pass.rows;
        const bool begins_chain = most_outputs_ > 0 && ordered_ == 0;
        if (begins_chain && caught_up_ == length_) prepare_output(pass);
        last_ticket_ = device_->submit(pass);
    }
}

void Mtp::catch_up(int length, uint32_t window) {
    owed_ = std::max(owed_, length);
    owed_window_ = window;
    pump_catch_up();
}

void Mtp::begin_chain(int length, std::span<const int32_t> forced, float stop_below, uint32_t window) {
    if (caught_up_ >= length) bug("[draft] a chain was ordered behind rows that are caught up already");
    cut();
    length_ = length;
    most_outputs_ = std::max(0, context_ - length - 1);
    stop_below_ = stop_below;
    chain_window_ = window;
    forced_.assign(forced.begin(), forced.end());
    catch_up(length, window);
}

void Mtp::pump() {
    pump_catch_up();
    if (caught_up_ < owed_) return;
    while (ordered_ > 0 && ordered_ < wanted_ && room() && !(landed() & STOPPED)) {
        Pass& pass = next_pass(chain_window_);
        pass.step = true;
        pass.cell = length_ - 1 + ordered_;
        pass.rows = 1;
        prepare_output(pass);
        last_ticket_ = device_->submit(pass);
    }
}

void Mtp::cut() {
    chain_.fetch_add(1, std::memory_order_relaxed);
    wanted_ = ordered_ = most_outputs_ = 0;
}

/// Outputs that are there, and whether the chain stopped behind them. A device with a clock computes outputs
/// before their time.
uint32_t Mtp::landed() const {
    const uint64_t word = landed_.load(std::memory_order_acquire);
    if (word >> 32 != chain_.load(std::memory_order_relaxed)) return 0;
    const uint32_t all = word & COUNT;
    uint32_t there = all;
    if (device_->has_clock())
        for (const uint64_t now = now_ns(); there > 0 && output(there - 1).there_ns > now;) --there;
    return there < all || next_due_ns() ? there : static_cast<uint32_t>(word);
}

/// When the next output that was computed before its time falls due; 0 if there is none. The step that ended
/// the chain gives none, and is due all the same.
uint64_t Mtp::next_due_ns() const {
    if (!device_->has_clock()) return 0;
    const uint64_t word = landed_.load(std::memory_order_acquire);
    if (word >> 32 != chain_.load(std::memory_order_relaxed)) return 0;
    const uint64_t now = now_ns();
    const uint32_t n = (word & COUNT) + (word & STOPPED ? 1 : 0);
    uint64_t due = 0;
    for (uint32_t i = n; i > 0 && output(i - 1).there_ns > now; --i) due = output(i - 1).there_ns;
    return due;
}

bool Mtp::exhausted() const { return (landed() & STOPPED) || count() >= most_outputs_; }

const float* Mtp::eval_cell(int cell) {
    cut();
    forget_owed();
    Pass& pass = next_pass(0);
    pass.cell = cell;
    pass.rows = 1;
    pass.output = 0;
    caught_up_ = owed_ = cell + 1;
    last_ticket_ = device_->submit(pass);
    while (!idle()) std::this_thread::yield();
    return logits_.data();
}

// ---- the worker

void Mtp::run(Team& team, const Pass& pass) {
    const bool current = pass.chain == chain_.load(std::memory_order_relaxed);
    if (pass.step && (stopped_ || !current)) return show_in_time(pass);
    if (injected_.load(std::memory_order_relaxed) && injected_.exchange(false))
        throw Error("[draft layer] window " + std::to_string(pass.window) + ": an error was injected here");
    keep_pace(pass);
    const uint64_t begun = now_ns(), start = device_->has_clock() ? device_->begins(pass.ordered_ns) : begun;
    device_->delay(ProgramKind::draft, pass.window);
    struct {
        Mtp* mtp;
        const Pass* pass;
        bool wanted;
    } job{this, &pass, pass.output >= 0 && current};
    if (times_kernels_) kernel_times_.count_program(pass.rows);
    team.run([&job](const Member& me) { job.mtp->run_layer(me, *job.pass, job.wanted); });
    uint64_t picked_since = times_kernels_ ? now_ns() : 0;
    if (job.wanted) pick(pass);
    if (times_kernels_) kernel_times_.add(pass.rows, KernelKind::pick, picked_since);
    pass_ns_ = now_ns() - begun;
    const uint64_t ended = device_->book({ProgramKind::draft, pass.window, pass.rows, pass.cell,
                                          device_->has_clock() ? pass.ordered_ns : begun});
    lasted_ns_ = std::max(start, ended) - start;
    if (job.wanted) {
        outputs_[pass.output % outputs_.size()].there_ns = ended;
        // A draft below the floor is none.
        const uint64_t there = stopped_ ? pass.output | STOPPED : pass.output + 1;
        landed_.store(uint64_t{pass.chain} << 32 | there, std::memory_order_release);
    }
    const int token = job.wanted ? outputs_[pass.output % outputs_.size()].token : -1;
    if (events_.on())
        events_.record({start, std::max(start, ended) - start, pass.window, EventKind::draft_step, DRAFT_LANE,
                        static_cast<uint16_t>(pass.rows), pass.step ? pass.output : 0, token});
    show_in_time(pass);
}

/// The last pass that is queued ends in its time: the host then looks again, and finds what was computed
/// before.
void Mtp::show_in_time(const Pass& pass) {
    if (device_->has_clock() && !device_->more_queued())
        device_->sleep_until(device_->begins(0), ProgramKind::draft, pass.window);
}

/// A device with a clock computes what is queued before its time where its steps take longer than they
/// should; but not while the host waits for the output just before. Steps that keep their time begin in it: a
/// cut then finds none that was computed, and counted, before.
void Mtp::keep_pace(const Pass& pass) {
    if (!device_->has_clock()) return;
    const uint64_t due = device_->begins(0), now = now_ns();
    const bool late = pass_ns_ > lasted_ns_;
    if (due <= now || (late && due > now + pass_ns_)) return;
    device_->sleep_until(due, ProgramKind::draft, pass.window);
    device_->call_host();
}

void Mtp::run_layer(const Member& me, const Pass& pass, bool wanted) {
    if (me.index == 0) device_->note_progress();
    const Dims& d = model_.dims();
    const float* hidden = pass.step ? row_.data() : hidden_.data() + int64_t{pass.cell} * d.n_embd;
    const int32_t* tokens = pass.step ? &token_ : line_->tokens.data() + pass.cell + 1;
    float* out = pass.step ? row_.data() : out_.data();
    CpuOps ops(me, scratch_, times_kernels_ && me.index == 0 ? &kernel_times_ : nullptr, pass.rows);
    rotary_angles(model_.rope(), pass.cell + 1, pass.rows, me, cos_.data(), sin_.data());
    ops.note(KernelKind::other);
    LayerState state;
    state.kv = {cells_k_.data(), cells_v_.data(), kv_type_, context_};
    const Batch batch{pass.rows, pass.cell + 1, cos_.data(), sin_.data()};
    Workspace scratch(workspace_.data(), workspace_.size());
    model_.draft(hidden, tokens, state, batch, pass.cell, out, scratch, ops);
    if (!wanted) return;
    if (!pass.step) ops.copy(out_.data() + int64_t{pass.rows - 1} * d.n_embd, row_.data(), d.n_embd);
    CpuOps(me, scratch_).project({{&model_.draft_head(), logits_.data(), d.n_vocab}}, row_.data(), 1);
    ops.note(KernelKind::head);
}

/// The output for position cell + rows + 1, by the noise and the settings of the pick that will judge it.
void Mtp::pick(const Pass& pass) {
    const int position = pass.cell + pass.rows + 1;
    const auto at = [this](int index) -> Output& { return outputs_[index % outputs_.size()]; };
    int32_t recent[Sampler::PENALTY_WINDOW];
    int count = 0;
    if (sampling_.repeat_penalty != 1) {
        const int base = position - pass.output;  // tokens of the line below, the chain's from there on
        count = std::min(position, Sampler::PENALTY_WINDOW);
        for (int i = 0; i < count; ++i) {
            const int p = position - count + i;
            recent[i] = p < base ? line_->tokens[p] : at(p - base).token;
        }
    }
    Output& output = at(pass.output);
    output.pick = sampler_.pick(sampling_, logits_.data(), {recent, size_t(count)}, position, true);
    output.token = token_ = pass.forced >= 0 ? pass.forced : output.pick.token;
    stopped_ = output.pick.probability < pass.stop_below;
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
