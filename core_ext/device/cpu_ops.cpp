#include "device/cpu_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace strata {

using cpu::ActFormat;

CpuScratch::CpuScratch(const Architecture& model, int max_rows, int n_threads, const cpu::Kernels& kernels)
    : kernels_(kernels) {
    const Dims& d = model.dims();
    const DeltaShape& delta = d.delta;
    const int widest = std::max(
        {2 * d.n_embd, d.n_ff, d.experts.n_ff_shared, d.n_heads * d.head_dim, delta.n_v_heads * delta.v_dim});
    for (ActFormat format : {ActFormat::Q8_32, ActFormat::Q8_256})
        activations_[static_cast<int>(format)] =
            Buffer<uint8_t>(cpu::act_row_bytes(format, widest) * 2 * max_rows);
    max_rows_ = max_rows;
    remainder_floats_ = (std::max(widest, d.experts.n_ff) + 255) / 256 * 256;
    remainders_ = Buffer<float>(int64_t{remainder_floats_} * n_threads);
    terms_ = Buffer<float>(int64_t{2} * max_rows * PIECE * n_threads);
    const int group = d.n_heads / d.n_kv_heads;
    queries_ = Buffer<float>(int64_t{1} * max_rows * d.n_heads * d.head_dim);
    heads_ = Buffer<float>(queries_.size());
    attention_floats_ =
        Workspace::round(cpu::attention_scratch(QUERY_ROWS * group, d.head_dim, d.head_dim) + d.head_dim);
    attention_ = Buffer<float>(attention_floats_ * n_threads);
    visible_ints_ = QUERY_ROWS * group;
    visible_ = Buffer<int>(int64_t{1} * visible_ints_ * n_threads);
    convolved_ = Buffer<float>(int64_t{1} * max_rows * delta.channels());
    delta_q_ = Buffer<float>(int64_t{1} * max_rows * delta.n_k_heads * delta.k_dim);
    delta_s_ = Buffer<float>(delta.state_floats());
    if (d.experts.n > 0) make_room_for_experts(d, max_rows);
}

uint64_t CpuScratch::size_bytes() const {
    uint64_t total = 0;
    for (const auto& buffer : activations_) total += buffer.size_bytes();
    for (const auto* buffer :
         {&remainders_, &terms_, &queries_, &heads_, &attention_, &convolved_, &delta_q_, &delta_s_})
        total += buffer->size_bytes();
    for (const auto& buffer : item_inputs_) total += buffer.size_bytes();
    for (const auto* buffer : {&expert_weights_, &item_gate_, &item_up_, &item_out_})
        total += buffer->size_bytes();
    for (const auto* buffer : {&visible_, &chosen_, &item_, &first_item_}) total += buffer->size_bytes();
    return total;
}

std::pair<int64_t, int64_t> CpuOps::floats_share(int64_t n) const {
    const int64_t units = (n + 15) / 16;
    const auto at = [&](int i) { return std::min(n, units * i / me_.count * 16); };
    return {at(me_.index), at(me_.index + 1)};
}

void CpuOps::embed(const Weight& table, const int32_t* tokens, int rows, float* out) {
    const auto [first, last] = me_.share(rows);
    for (int r = first; r < last; ++r)
        k_.dequantize(table.type, static_cast<const uint8_t*>(table.data) + tokens[r] * table.row_bytes,
                      table.n_in, out + int64_t{r} * table.n_in);
    me_.meet();
    note(KernelKind::embed);
}

void CpuOps::copy(const float* x, float* out, int64_t n) {
    const auto [first, last] = floats_share(n);
    std::memcpy(out + first, x + first, (last - first) * sizeof(float));
    me_.meet();
    note(KernelKind::copy);
}

void CpuOps::add(float* x, const float* y, int64_t n) {
    const auto [first, last] = floats_share(n);
    k_.add(x + first, y + first, last - first);
    me_.meet();
    note(KernelKind::elementwise);
}

/// Rows and columns as one line of floats, so that one row too is split over the team.
void CpuOps::add_row(float* x, const float* y, int rows, int n) {
    const auto [first, last] = floats_share(int64_t{rows} * n);
    for (int64_t i = first; i < last; ++i) x[i] += y[i % n];
    me_.meet();
    note(KernelKind::elementwise);
}

void CpuOps::add_gated(float* x, const float* gate, const float* y, int rows, int n) {
    const auto [first, last] = floats_share(int64_t{rows} * n);
    for (int64_t i = first; i < last;) {
        const int64_t end = std::min(last, (i / n + 1) * n);
        const float weight = 1.0f / (1.0f + std::exp(-gate[i / n]));
        for (; i < end; ++i) x[i] += weight * y[i];
    }
    me_.meet();
    note(KernelKind::elementwise);
}

void CpuOps::silu_mul(const float* gate, const float* up, float* out, int64_t n) {
    const auto [first, last] = floats_share(n);
    k_.silu_mul(gate + first, up + first, out + first, last - first);
    me_.meet();
    note(KernelKind::elementwise);
}

void CpuOps::norm(const float* x, const float* weight, int rows, int n, float eps, float* out,
                  int out_stride) {
    if (out_stride == 0) out_stride = n;
    const auto [first, last] = me_.share(rows);
    for (int r = first; r < last; ++r)
        k_.rms_norm(x + int64_t{r} * n, weight, n, eps, out + int64_t{r} * out_stride);
    me_.meet();
    note(KernelKind::norm);
}

/// This member's rows of activations in `format`; second terms `rows` places behind the first.
void CpuOps::quantise(ActFormat format, bool fine, const float* x, int n_in, int rows) {
    uint8_t* out = s_.activations_[static_cast<int>(format)].data();
    float* remainder = s_.remainders_.data() + int64_t{me_.index} * s_.remainder_floats_;
    const size_t stride = cpu::act_row_bytes(format, n_in);
    const auto [first, last] = me_.share(rows);
    for (int r = first; r < last; ++r) {
        k_.quantize(format, x + int64_t{r} * n_in, n_in, out + r * stride);
        if (!fine) continue;
        k_.remainder(format, x + int64_t{r} * n_in, n_in, remainder);
        k_.quantize(format, remainder, n_in, out + (rows + r) * stride);
    }
}

void CpuOps::project(std::initializer_list<Projection> projections, const float* x, int rows) {
    for (ActFormat format : {ActFormat::Q8_32, ActFormat::Q8_256}) {
        bool wanted = false, fine = false;
        for (const Projection& p : projections)
            if (cpu::act_format(p.weight->type) == format) wanted = true, fine |= p.fine;
        if (wanted) quantise(format, fine, x, projections.begin()->weight->n_in, rows);
    }
    me_.meet();
    KernelKind kind = KernelKind::quantise;
    for (const Projection& p : projections) {
        note(kind);
        multiply(p, x, rows);
        kind = projection(p.weight->type);
    }
    me_.meet();
    note(kind);
}

void CpuOps::multiply(const Projection& p, const float* x, int rows) {
    const ActFormat format = cpu::act_format(p.weight->type);
    const bool floats = format == ActFormat::F32;
    const void* input =
        floats ? static_cast<const void*>(x) : s_.activations_[static_cast<int>(format)].data();
    const size_t stride =
        floats ? p.weight->n_in * sizeof(float) : cpu::act_row_bytes(format, p.weight->n_in);
    if (p.fine && !floats) return multiply_fine(p, input, stride, rows);
    const auto [begin, end] = me_.share(p.weight->n_out, 4);
    k_.matmul(*p.weight, input, stride, rows, begin, end, p.out, p.out_stride);
}

/// First and second terms as rows of one product, which still reads each weight once; then their sum.
void CpuOps::multiply_fine(const Projection& p, const void* input, size_t stride, int rows) {
    constexpr int PIECE = CpuScratch::PIECE;
    float* terms = s_.terms_.data() + int64_t{2} * s_.max_rows_ * PIECE * me_.index;
    const auto [begin, end] = me_.share(p.weight->n_out, 4);
    for (int o = begin; o < end; o += PIECE) {
        Weight piece = *p.weight;
        piece.data = static_cast<const uint8_t*>(piece.data) + o * piece.row_bytes;
        piece.n_out = std::min(PIECE, end - o);
        k_.matmul(piece, input, stride, 2 * rows, 0, piece.n_out, terms, PIECE);
        for (int r = 0; r < rows; ++r) {
            const float *first = terms + int64_t{r} * PIECE, *second = first + int64_t{rows} * PIECE;
            float* y = p.out + int64_t{r} * p.out_stride + o;
            for (int i = 0; i < piece.n_out; ++i) y[i] = first[i] + second[i];
        }
    }
}

// ---- attention

/// Queries, normalised and rotated, as [n_kv_heads, rows, group, head_dim]: those of one kv head lie
/// together.
void CpuOps::place_queries(const AttentionOp& op, int rows) {
    const int group = op.n_heads / op.n_kv_heads;
    const auto [first, last] = me_.share(rows * op.n_heads);
    for (int item = first; item < last; ++item) {
        const int r = item / op.n_heads, h = item % op.n_heads;
        const float* from = op.q + int64_t{item} * op.q_stride;
        float* q = s_.queries_.data() + ((int64_t{h / group} * rows + r) * group + h % group) * op.head_dim;
        if (op.q_norm)
            k_.rms_norm(from, op.q_norm, op.head_dim, op.norm_eps, q);
        else
            std::memcpy(q, from, op.head_dim * sizeof(float));
        if (op.n_rot) {
            const int64_t angle = int64_t{r} * (op.n_rot / 2);
            k_.rope(q, op.n_rot, op.adjacent_pairs, op.cos + angle, op.sin + angle);
        }
    }
}

/// Keys, normalised and rotated, and values into their cells, in the cache's type.
void CpuOps::store_cells(const AttentionOp& op, int rows) {
    float* key = s_.attention_.data() + me_.index * s_.attention_floats_;
    const auto store = [&](const float* x, void* cells, int64_t cell) {
        if (op.cache.type == KvType::F16)
            k_.store_f16(x, op.head_dim, static_cast<uint16_t*>(cells) + cell * op.head_dim);
        else
            std::memcpy(static_cast<float*>(cells) + cell * op.head_dim, x, op.head_dim * sizeof(float));
    };
    const auto [first, last] = me_.share(rows * op.n_kv_heads);
    for (int item = first; item < last; ++item) {
        const int r = item / op.n_kv_heads, h = item % op.n_kv_heads;
        const int64_t cell = int64_t{h} * op.cache.context + op.position + r;
        const float* k = op.k + int64_t{item} * op.head_dim;
        if (op.k_norm)
            k_.rms_norm(k, op.k_norm, op.head_dim, op.norm_eps, key);
        else
            std::memcpy(key, k, op.head_dim * sizeof(float));
        if (op.n_rot) {
            const int64_t angle = int64_t{r} * (op.n_rot / 2);
            k_.rope(key, op.n_rot, op.adjacent_pairs, op.cos + angle, op.sin + angle);
        }
        store(key, op.cache.k, cell);
        store(op.v + int64_t{item} * op.head_dim, op.cache.v, cell);
    }
}

/// Items: a kv head x a tile of rows x a part of the heads that share it (parts only where there are too few
/// items).
void CpuOps::attend(const AttentionOp& op, int rows) {
    const int group = op.n_heads / op.n_kv_heads, tile = std::min(rows, CpuScratch::QUERY_ROWS);
    const int n_tiles = (rows + tile - 1) / tile;
    const int n_parts = rows == 1 ? std::clamp(me_.count / op.n_kv_heads, 1, group) : 1;
    const size_t element = op.cache.type == KvType::F16 ? 2 : 4;
    int* visible = s_.visible_.data() + me_.index * s_.visible_ints_;
    const auto [first, last] = me_.share(op.n_kv_heads * n_tiles * n_parts);
    for (int item = first; item < last; ++item) {
        const int kv = item / (n_tiles * n_parts), t = item / n_parts % n_tiles, part = item % n_parts;
        const int row0 = t * tile, n_rows = std::min(tile, rows - row0);
        const int head0 = group * part / n_parts, head1 = group * (part + 1) / n_parts;
        const int64_t query0 = (int64_t{kv} * rows + row0) * group + head0;
        cpu::Attention a;
        a.n_queries = n_parts > 1 ? head1 - head0 : n_rows * group;
        for (int i = 0; i < a.n_queries; ++i)
            visible[i] = op.position + row0 + (n_parts > 1 ? 0 : i / group) + 1;
        a.q = s_.queries_.data() + query0 * op.head_dim;
        a.q_stride = op.head_dim;
        a.n_visible = visible;
        const int64_t cell0 = int64_t{kv} * op.cache.context * op.head_dim * element;
        a.k = static_cast<const uint8_t*>(op.cache.k) + cell0;
        a.v = static_cast<const uint8_t*>(op.cache.v) + cell0;
        a.kv_type = op.cache.type;
        a.head_dim = a.v_dim = op.head_dim;
        a.scale = op.scale;
        a.out = s_.heads_.data() + query0 * op.head_dim;
        a.out_stride = op.head_dim;
        a.scratch = s_.attention_.data() + me_.index * s_.attention_floats_;
        k_.attention(a);
        for (int i = 0; i < a.n_queries; ++i) {
            const int r = row0 + (n_parts > 1 ? 0 : i / group),
                      h = kv * group + head0 + (n_parts > 1 ? i : i % group);
            const float* head = a.out + int64_t{i} * op.head_dim;
            float* out = op.out + (int64_t{r} * op.n_heads + h) * op.head_dim;
            if (op.gated)
                k_.sigmoid_mul(op.q + (int64_t{r} * op.n_heads + h) * op.q_stride + op.head_dim, head, out,
                               op.head_dim);
            else
                std::memcpy(out, head, op.head_dim * sizeof(float));
        }
    }
}

void CpuOps::attention(const AttentionOp& op, int rows) {
    place_queries(op, rows);
    store_cells(op, rows);
    me_.meet();  // every cell of these rows is stored before any is read back
    attend(op, rows);
    me_.meet();
    note(KernelKind::attention);
}

// ---- Gated DeltaNet

/// The convolution's input `back` rows before row 0 ..: rows of u, or of the history before them.
static const float* conv_input(const float* history, const float* u, int taps, int channels, int row) {
    return row >= 0 ? u + int64_t{row} * channels : history + int64_t{taps - 1 + row} * channels;
}

static void advance_history(const DeltaShape& shape, const float* from, const float* u, int rows, float* to) {
    for (int j = 0; j < shape.taps - 1; ++j)
        std::memcpy(to + int64_t{j} * shape.channels(),
                    conv_input(from, u, shape.taps, shape.channels(), rows - (shape.taps - 1) + j),
                    shape.channels() * sizeof(float));
}

/// q, k, v of each head from the convolved channels; decay and beta of each v head.
void CpuOps::convolve(const DeltaOp& op, int rows) {
    const DeltaShape& d = op.shape;
    const int channels = d.channels(), n_k = d.n_k_heads, n_slices = 2 * n_k + d.n_v_heads;
    const auto [first, last] = me_.share(n_slices * rows);
    for (int item = first; item < last; ++item) {
        const int r = item / n_slices, slice = item % n_slices;
        const bool value = slice >= 2 * n_k;
        const int begin = value ? 2 * n_k * d.k_dim + (slice - 2 * n_k) * d.v_dim : slice * d.k_dim;
        const float* inputs[16];
        for (int j = 0; j < d.taps; ++j)
            inputs[j] = conv_input(op.state.history, op.record.u, d.taps, channels, r - (d.taps - 1) + j);
        float* c = s_.convolved_.data() + int64_t{r} * channels;
        k_.conv_silu(inputs, op.conv, d.taps, channels, begin, begin + (value ? d.v_dim : d.k_dim), c);
        if (value) {
            const int64_t at = int64_t{r} * d.n_v_heads + (slice - 2 * n_k);
            const int h = slice - 2 * n_k;
            std::memcpy(op.record.v + at * d.v_dim, c + begin, d.v_dim * sizeof(float));
            const float x = op.a[at] + op.dt_bias[h];
            const float softplus = x > 20 ? x : std::log1p(std::exp(x));
            op.record.decay[at] = std::exp(op.ssm_a[h] * softplus);
            op.record.beta[at] = 1.0f / (1.0f + std::exp(-op.b[at]));
        } else if (slice < n_k) {
            k_.l2_norm(c + begin, d.k_dim, op.norm_eps, 1.0f / std::sqrt(static_cast<float>(d.k_dim)),
                       s_.delta_q_.data() + (int64_t{r} * n_k + slice) * d.k_dim);
        } else {
            k_.l2_norm(c + begin, d.k_dim, op.norm_eps, 1.0f,
                       op.record.k + (int64_t{r} * n_k + (slice - n_k)) * d.k_dim);
        }
    }
}

/// The step of v head h at row r of a record, without its query.
static cpu::DeltaStep recorded_step(const DeltaShape& d, const DeltaRecord& record, int r, int h) {
    const int k_head = d.interleaved ? h % d.n_k_heads : h / (d.n_v_heads / d.n_k_heads);
    const int64_t at = int64_t{r} * d.n_v_heads + h;
    cpu::DeltaStep step;
    step.k = record.k + (int64_t{r} * d.n_k_heads + k_head) * d.k_dim;
    step.v = record.v + at * d.v_dim;
    step.decay = record.decay[at];
    step.beta = record.beta[at];
    step.k_dim = d.k_dim;
    step.v_dim = d.v_dim;
    return step;
}

void CpuOps::delta(const DeltaOp& op, int rows) {
    const DeltaShape& d = op.shape;
    convolve(op, rows);
    me_.meet();
    const auto [first, last] = me_.share(d.n_v_heads);
    for (int h = first; h < last; ++h) {
        const int64_t state = int64_t{h} * d.k_dim * d.v_dim;
        const int k_head = d.interleaved ? h % d.n_k_heads : h / (d.n_v_heads / d.n_k_heads);
        float* s = (op.advance.s ? op.advance.s : s_.delta_s_.data()) + state;
        for (int r = 0; r < rows; ++r) {
            cpu::DeltaStep step = recorded_step(d, op.record, r, h);
            float* out = op.out + (int64_t{r} * d.n_v_heads + h) * d.v_dim;
            step.s_in = r == 0 ? op.state.s + state : s;
            step.s_out = s;
            step.q = s_.delta_q_.data() + (int64_t{r} * d.n_k_heads + k_head) * d.k_dim;
            step.o = out;
            k_.delta_step(step);
            k_.rms_norm(out, op.norm, d.v_dim, op.norm_eps, out);
            k_.silu_mul(op.z + (int64_t{r} * d.n_v_heads + h) * d.v_dim, out, out, d.v_dim);
        }
    }
    if (op.advance.history && me_.index == 0)
        advance_history(d, op.state.history, op.record.u, rows, op.advance.history);
    me_.meet();
    note(KernelKind::delta);
}

void CpuOps::delta_commit(const DeltaShape& d, const DeltaState& from, const DeltaState& to,
                          const DeltaRecord& record, int n) {
    const auto [first, last] = me_.share(d.n_v_heads);
    for (int h = first; h < last; ++h) {
        const int64_t state = int64_t{h} * d.k_dim * d.v_dim;
        for (int r = 0; r < n; ++r) {
            cpu::DeltaStep step = recorded_step(d, record, r, h);
            step.s_in = (r == 0 ? from.s : to.s) + state;
            step.s_out = to.s + state;
            k_.delta_step(step);
        }
    }
    if (me_.index == 0) advance_history(d, from.history, record.u, n, to.history);
    me_.meet();
    note(KernelKind::commit);
}

}  // namespace strata
