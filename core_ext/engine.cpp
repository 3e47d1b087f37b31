#include "engine.h"

#include <algorithm>

#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"

namespace strata {

/// Two slots and two states even without pipelining: the next window need not wait for the commit before it.
constexpr int MOST_UNPIPELINED = 2;

void Engine::check(const Architecture& model, const EngineOptions& o) {
    const int n_layers = model.dims().n_layers;
    const auto refuse = [](const std::string& what) { throw Error("[engine] " + what); };
    if (o.split.size() >= 32)
        refuse("--split should make 32 stages at most, got " + std::to_string(o.split.size() + 1));
    int before = 0;
    for (int layer : o.split) {
        if (layer <= before || layer >= n_layers)
            refuse("--split should ascend within layers 1 to " + std::to_string(n_layers - 1) + ", got " +
                   std::to_string(layer));
        before = layer;
    }
    if (o.devices.size() != o.split.size() + 1)
        refuse("--device should name " + std::to_string(o.split.size() + 1) + " devices, one a stage, got " +
               std::to_string(o.devices.size()));
    const auto usable = usable_cores();
    for (const CpuSpec& device : o.devices) {
        device.pace.check(o.context);
        if (device.threads < 1 || device.threads > 1024)
            refuse("a CPU device should have 1 to 1024 threads, got " + std::to_string(device.threads));
        for (int core : device.cores)
            if (std::find(usable.begin(), usable.end(), core) == usable.end())
                refuse("a CPU device should be pinned to cores that this process may use, got core " +
                       std::to_string(core));
    }
    if (o.context < 1) refuse("--ctx should be 1 or more, got " + std::to_string(o.context));
    if (o.chunk < 1 || o.chunk > 8192)
        refuse("--chunk should be 1 to 8192 rows, got " + std::to_string(o.chunk));
    if (o.pipeline_max < 0)
        refuse("--pipeline-max should be 0 or more, got " + std::to_string(o.pipeline_max));
}

Engine::Engine(std::shared_ptr<const GgufFile> file, const EngineOptions& options,
               std::shared_ptr<const GgufFile> draft)
    : file_(std::move(file)),
      draft_file_(std::move(draft)),
      model_(Architecture::load({file_, draft_file_})),
      options_(options),
      kernels_(cpu::kernels(options.isa.c_str())),
      recorder_(options.events, options.event_capacity) {
    check(*model_, options_);
    for (const auto& each : {file_, draft_file_})
        for (const std::string& line : each ? each->copies_notices() : std::vector<std::string>())
            notices_.add(line);
    require(kept_for_a_text());
    host_events_ = &recorder_.add_lane();
    const int n_stages = static_cast<int>(options_.devices.size());
    for (int s = 0; s < n_stages; ++s) {
        StageShape shape;
        shape.index = s;
        shape.n_stages = n_stages;
        shape.first_layer = s == 0 ? 0 : options_.split[s - 1];
        shape.last_layer = (s == n_stages - 1 ? model_->dims().n_layers : options_.split[s]) - 1;
        shape.context = options_.context;
        shape.chunk = options_.chunk;
        shape.kv_type = options_.kv_type;
        split_.stages.push_back(
            std::make_unique<Stage>(*model_, shape, options_.devices[s], kernels_, done_, recorder_));
    }
    windows_allocated_ = windows_that_fit(std::min(options_.pipeline_max, n_stages));
    n_slots_ = n_states_ = std::max(MOST_UNPIPELINED, windows_allocated_);
    for (auto& stage : split_.stages) stage->allocate_windows(n_slots_, n_states_);
    for (int b = 0; b + 1 < n_stages; ++b) {
        auto& slots = split_.boundaries.emplace_back();
        for (int slot = 0; slot < n_slots_ + CHUNK_SLOTS; ++slot)
            slots.push_back(std::make_unique<HandOff>(slot < n_slots_ ? MAX_WINDOW_ROWS : options_.chunk,
                                                      model_->dims().n_embd));
    }
    for (int s = 0; s < n_stages; ++s)
        split_.stages[s]->connect(s > 0 ? &split_.boundaries[s - 1] : nullptr,
                                  s + 1 < n_stages ? &split_.boundaries[s] : nullptr);
    if (model_->has_draft_layer()) {
        // The draft layer's queue runs beside the last stage, on the same cores.
        split_.mtp =
            std::make_unique<Mtp>(*model_, options_.context, std::max(MAX_WINDOW_ROWS, options_.chunk),
                                  (n_slots_ + 2) * MAX_WINDOW_ROWS, options_.kv_type, options_.devices.back(),
                                  kernels_, done_, recorder_);
        split_.last().keep_hidden(split_.mtp->hidden_by_position());
    } else {
        switches_.draft = DraftSource::lookup;
    }
    require(allocated());
}

/// Of one token in one attention layer, K and V.
static uint64_t cell_bytes(const Dims& d, KvType type) {
    return 2 * uint64_t(d.n_kv_heads) * d.head_dim * (type == KvType::F16 ? 2 : 4);
}

/// Of what the draft layer will keep for the whole context: hidden rows and cells.
uint64_t Engine::draft_bytes() const {
    if (!model_->has_draft_layer()) return 0;
    const Dims& d = model_->dims();
    return uint64_t(options_.context) *
           (uint64_t(d.n_embd) * sizeof(float) + cell_bytes(d, options_.kv_type));
}

/// What a text takes at least, whatever the buffers: known before anything is allocated.
Engine::Memory Engine::kept_for_a_text() const {
    const Dims& d = model_->dims();
    const double cells = double(options_.context) * cell_bytes(d, options_.kv_type);
    const double state = double(d.delta.state_floats() + d.delta.history_floats()) * sizeof(float);
    Memory memory{double(draft_bytes()), 0, 0};
    for (int layer = 0; layer < d.n_layers; ++layer) {
        if (model_->kind(layer) == LayerKind::delta)
            memory.states += MOST_UNPIPELINED * state;
        else
            memory.context += cells;
    }
    return memory;
}

/// What everything takes that has been allocated; none of it has been written yet, so that it can be given
/// back.
Engine::Memory Engine::allocated() const {
    double all = split_.mtp ? split_.mtp->kv_bytes() + split_.mtp->buffer_bytes() : 0;
    Memory memory = kept_for_a_text();
    memory.states = 0;
    for (const auto& stage : split_.stages) {
        memory.states += stage->state_bytes();
        all += stage->kv_bytes() + stage->state_bytes() + stage->buffer_bytes();
    }
    memory.buffers = all - memory.states - memory.context;
    return memory;
}

uint64_t Engine::available() const { return options_.memory ? options_.memory : available_memory(); }

/// Pages of the mapped model don't count: the system drops them where it needs room.
void Engine::require(const Memory& memory) const {
    const double needed = memory.context + memory.states + memory.buffers, there = double(available());
    if (needed <= there) return;
    const auto mib = [](double bytes) {
        return std::to_string(static_cast<uint64_t>(bytes / (1 << 20))) + " MiB";
    };
    std::string parts = mib(memory.context) + " for --ctx " + std::to_string(options_.context);
    if (memory.states > 0) parts += ", " + mib(memory.states) + " of recurrent states";
    if (memory.buffers > 0)
        parts += ", " + mib(memory.buffers) + " of buffers at --chunk " + std::to_string(options_.chunk);
    throw Error("[engine] needs " + mib(needed) + " of memory beside the mapped model (" + parts + "), " +
                mib(there) + " are available");
}

/// Windows in flight that there is memory for, of those asked for; fewer are said. Two cost nothing more than
/// none.
int Engine::windows_that_fit(int asked) {
    if (asked <= MOST_UNPIPELINED) return asked < 2 ? 0 : asked;
    const auto needed = [&](int windows) {
        uint64_t bytes = 0;
        for (const auto& stage : split_.stages) bytes += stage->window_bytes(windows, windows);
        return bytes;
    };
    uint64_t given = options_.window_memory;
    if (given == 0) {
        // The mapped file counts as available, and so does what is allocated but not written yet.
        uint64_t spoken_for =
            file_->size_bytes() + (draft_file_ ? draft_file_->size_bytes() : 0) + draft_bytes();
        for (const auto& stage : split_.stages) spoken_for += stage->kv_bytes() + stage->buffer_bytes();
        const uint64_t there = available();
        given = there > spoken_for ? there - spoken_for : 0;
    }
    int fit = asked;
    while (fit > MOST_UNPIPELINED && needed(fit) > given) --fit;
    if (fit < asked)
        notices_.add("--pipeline-max " + std::to_string(options_.pipeline_max) + ": " + std::to_string(fit) +
                     " windows in flight allocated: " + std::to_string(asked) + " need " +
                     std::to_string(needed(asked) >> 20) + " MiB, " + std::to_string(given >> 20) +
                     " MiB are left beside the model and its cells");
    return fit;
}

Engine::~Engine() {
    for (auto& stage : split_.stages) stage->device().cut(UINT32_MAX);
    if (split_.mtp) split_.mtp->device().cut(UINT32_MAX);
    if (session_) session_->close();
}

std::shared_ptr<Session> Engine::session() {
    if (session_) session_->close();
    SessionParts parts;
    parts.model = model_.get();
    parts.split = &split_;
    parts.switches = &switches_;
    parts.notices = &notices_;
    parts.events = host_events_;
    parts.done = &done_;
    parts.context = options_.context;
    parts.chunk = options_.chunk;
    parts.n_slots = n_slots_;
    parts.n_states = n_states_;
    parts.windows_allocated = windows_allocated_;
    parts.watchdog_ns = static_cast<uint64_t>(options_.watchdog_s * 1e9);
    session_ = std::make_shared<Session>(parts);
    return session_;
}

void Engine::run_alone(Stage& stage, Program& program) {
    const Ticket ticket = stage.device().submit(program);
    for (uint64_t seen = done_.value(); stage.device().finished() < ticket; seen = done_.value())
        if (stage.device().finished() < ticket) done_.wait_ge(seen + 1, WAIT_BOUND_NS);
    if (stage.device().failed()) {
        const std::string text = stage.device().failure();
        stage.device().clear_failure();
        throw Error(text);
    }
}

/// Windows of 8 rows through all stages, each committed whole; the draft layer cell by cell, since it keeps
/// one row's logits.
EvalResult Engine::eval(const std::vector<int32_t>& tokens) {
    const Dims& d = model_->dims();
    const int n = static_cast<int>(tokens.size());
    if (n < 1 || n > options_.context)
        throw Error("[eval] expected 1 to " + std::to_string(options_.context) + " tokens, got " +
                    std::to_string(n));
    for (int32_t token : tokens)
        if (token < 0 || token >= d.n_vocab)
            throw Error("[eval] token ids should be from 0 to " + std::to_string(d.n_vocab - 1) + ", got " +
                        std::to_string(token));
    if (session_) session_->close();
    EvalResult result;
    result.logits.resize(int64_t{n} * d.n_vocab);
    result.hidden.resize(int64_t{n} * d.n_embd);
    for (auto& stage : split_.stages) stage->clear_state(0);
    int state = 0;
    for (int position = 0; position < n; position += MAX_WINDOW_ROWS, state = 1 - state) {
        const int rows = std::min(MAX_WINDOW_ROWS, n - position);
        const uint32_t window = ++split_.last_window;
        for (auto& stage : split_.stages) {
            ForwardInputs& inputs = stage->forward_inputs(0);
            inputs = {};
            inputs.window = window;
            inputs.rows = rows;
            inputs.position = position;
            inputs.launched_ns = now_ns();
            std::copy_n(tokens.data() + position, rows, inputs.tokens.data());
            inputs.all_logits = true;
            inputs.state = state;
            run_alone(*stage, stage->forward_program(0));
            stage->commit_inputs(0) = {window, rows, state, 1 - state, false};
            run_alone(*stage, stage->commit_program(0));
        }
        std::copy_n(split_.last().logits(0), int64_t{rows} * d.n_vocab,
                    result.logits.data() + int64_t{position} * d.n_vocab);
        std::copy_n(split_.last().hidden(0), int64_t{rows} * d.n_embd,
                    result.hidden.data() + int64_t{position} * d.n_embd);
    }
    if (split_.mtp) {
        TokenLine line(n);
        std::copy(tokens.begin(), tokens.end(), line.tokens.data());
        split_.mtp->set_sampling({}, &line);
        result.nextn_logits.resize(int64_t{n - 1} * d.n_vocab);
        for (int cell = 0; cell + 1 < n; ++cell)
            std::copy_n(split_.mtp->eval_cell(cell), d.n_vocab,
                        result.nextn_logits.data() + int64_t{cell} * d.n_vocab);
        split_.mtp->set_sampling({}, nullptr);  // the line goes
        split_.mtp->forget_from(0);
    }
    return result;
}

}  // namespace strata
