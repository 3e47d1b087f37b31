#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/cpu_ops.h"

namespace strata {

using cpu::ActFormat;

namespace {

constexpr ActFormat FORMATS[] = {ActFormat::F32, ActFormat::Q8_32, ActFormat::Q8_256};

/// The k experts with the largest logits, best first; of equal ones the lower id.
void choose(const float* logits, int n, int k, int* chosen) {
    int count = 0;
    for (int e = 0; e < n; ++e) {
        int at = count;
        while (at > 0 && logits[e] > logits[chosen[at - 1]]) --at;
        if (at == k) continue;
        if (count < k) ++count;
        for (int i = count - 1; i > at; --i) chosen[i] = chosen[i - 1];
        chosen[at] = e;
    }
}

}  // namespace

void CpuScratch::make_room_for_experts(const Dims& d, int max_rows) {
    const ExpertShape& e = d.experts;
    const int64_t items = int64_t{max_rows} * e.n_used;
    chosen_ = Buffer<int>(items);
    item_ = Buffer<int>(items);
    expert_weights_ = Buffer<float>(items);
    first_item_ = Buffer<int>(int64_t{e.n} + 1);
    for (ActFormat format : FORMATS)
        item_inputs_[static_cast<int>(format)] = Buffer<uint8_t>(
            items * std::max(cpu::act_row_bytes(format, d.n_embd), 2 * cpu::act_row_bytes(format, e.n_ff)));
    item_gate_ = Buffer<float>(items * e.n_ff);
    item_up_ = Buffer<float>(items * e.n_ff);
    item_out_ = Buffer<float>(items * d.n_embd);
}

/// Experts and their weights for this member's rows. Sums run in the kernels' fixed order, then by rank.
void CpuOps::route(const ExpertsOp& op, int rows) {
    const ExpertShape& shape = op.shape;
    const int k = shape.n_used;
    const auto [first, last] = me_.share(rows);
    for (int r = first; r < last; ++r) {
        float* logits = op.logits + int64_t{r} * shape.n;
        int* chosen = s_.chosen_.data() + int64_t{r} * k;
        float* weights = s_.expert_weights_.data() + int64_t{r} * k;
        choose(logits, shape.n, k, chosen);
        const float best = logits[chosen[0]];
        switch (shape.gating) {
            case Gating::softmax: {
                const float sum = k_.exp_sum(logits, shape.n, best, 1, logits);
                for (int j = 0; j < k; ++j) weights[j] = logits[chosen[j]] / sum;
                break;
            }
            case Gating::sigmoid:
                for (int j = 0; j < k; ++j) weights[j] = 1.0f / (1.0f + std::exp(-logits[chosen[j]]));
                break;
            case Gating::softmax_of_chosen: {
                for (int j = 0; j < k; ++j) weights[j] = logits[chosen[j]];
                const float sum = k_.exp_sum(weights, k, best, 1, weights);
                for (int j = 0; j < k; ++j) weights[j] /= sum;
                break;
            }
        }
        float sum = 0;
        for (int j = 0; j < k; ++j) sum += weights[j];
        const float factor = shape.scale / (shape.normalised ? std::max(sum, 0x1p-14f) : 1.0f);
        for (int j = 0; j < k; ++j) weights[j] *= factor;
    }
}

/// A place for every item: by expert, then by row.
void CpuOps::sort_items(const ExpertShape& shape, int rows) {
    int* first = s_.first_item_.data();
    const int items = rows * shape.n_used;
    std::fill_n(first, shape.n + 1, 0);
    for (int i = 0; i < items; ++i) ++first[s_.chosen_[i] + 1];
    for (int e = 0; e < shape.n; ++e) first[e + 1] += first[e];
    for (int i = 0; i < items; ++i) s_.item_[i] = first[s_.chosen_[i]]++;
    for (int e = shape.n; e > 0; --e) first[e] = first[e - 1];
    first[0] = 0;
}

/// Each of this member's rows, in the formats that the matrices want, at the places of its items.
void CpuOps::place_inputs(const ExpertsOp& op, int rows) {
    const int k = op.shape.n_used, n_in = op.gate->first.n_in;
    const auto [first, last] = me_.share(rows);
    for (ActFormat format : FORMATS) {
        if (format != cpu::act_format(op.gate->first.type) && format != cpu::act_format(op.up->first.type))
            continue;
        uint8_t* out = s_.item_inputs_[static_cast<int>(format)].data();
        const size_t stride = cpu::act_row_bytes(format, n_in);
        for (int r = first; r < last; ++r) {
            const int* items = s_.item_.data() + int64_t{r} * k;
            k_.quantize(format, op.x + int64_t{r} * n_in, n_in, out + items[0] * stride);
            for (int j = 1; j < k; ++j) std::memcpy(out + items[j] * stride, out + items[0] * stride, stride);
        }
    }
}

/// out [items, n_out]: every expert's matrix is read once for all rows that chose it. This member computes
/// its share of each matrix's rows.
void CpuOps::multiply_items(const ExpertStack& stack, int n_experts, float* out) {
    const ActFormat format = cpu::act_format(stack.first.type);
    const size_t stride = cpu::act_row_bytes(format, stack.first.n_in);
    const uint8_t* inputs = s_.item_inputs_[static_cast<int>(format)].data();
    const int n_out = stack.first.n_out, *first = s_.first_item_.data();
    const auto [begin, end] = me_.share(n_out, 4);
    for (int e = 0; e < n_experts; ++e)
        if (first[e] < first[e + 1])
            k_.matmul(stack.of(e), inputs + first[e] * stride, stride, first[e + 1] - first[e], begin, end,
                      out + int64_t{first[e]} * n_out, n_out);
}

/// silu(gate) * up of this member's items, in two terms an item as multiply_items_fine reads them.
void CpuOps::activate_items(const ExpertsOp& op, int rows) {
    const int n_ff = op.shape.n_ff;
    const ActFormat format = cpu::act_format(op.down->first.type);
    const size_t stride = cpu::act_row_bytes(format, n_ff);
    uint8_t* out = s_.item_inputs_[static_cast<int>(format)].data();
    float* remainder = s_.remainders_.data() + int64_t{me_.index} * s_.remainder_floats_;
    const auto [first, last] = me_.share(rows * op.shape.n_used);
    for (int i = first; i < last; ++i) {
        float* hidden = s_.item_gate_.data() + int64_t{i} * n_ff;
        k_.silu_mul(hidden, s_.item_up_.data() + int64_t{i} * n_ff, hidden, n_ff);
        if (format == ActFormat::F32) {
            k_.quantize(format, hidden, n_ff, out + i * stride);
            continue;
        }
        k_.quantize(format, hidden, n_ff, out + 2 * i * stride);
        k_.remainder(format, hidden, n_ff, remainder);
        k_.quantize(format, remainder, n_ff, out + (2 * i + 1) * stride);
    }
}

/// The same as multiply_items for inputs in two terms; a row's terms are neighbours.
void CpuOps::multiply_items_fine(const ExpertStack& stack, int n_experts, float* out) {
    const ActFormat format = cpu::act_format(stack.first.type);
    if (format == ActFormat::F32) return multiply_items(stack, n_experts, out);
    constexpr int PIECE = CpuScratch::PIECE;
    float* terms = s_.terms_.data() + int64_t{2} * s_.max_rows_ * PIECE * me_.index;
    const size_t stride = cpu::act_row_bytes(format, stack.first.n_in);
    const uint8_t* inputs = s_.item_inputs_[static_cast<int>(format)].data();
    const int n_out = stack.first.n_out, *first = s_.first_item_.data();
    const auto [begin, end] = me_.share(n_out, 4);
    for (int e = 0; e < n_experts; ++e) {
        const int rows = first[e + 1] - first[e];
        for (int o = begin; rows > 0 && o < end; o += PIECE) {
            Weight piece = stack.of(e);
            piece.data = static_cast<const uint8_t*>(piece.data) + o * piece.row_bytes;
            piece.n_out = std::min(PIECE, end - o);
            k_.matmul(piece, inputs + 2 * first[e] * stride, stride, 2 * rows, 0, piece.n_out, terms, PIECE);
            for (int r = 0; r < rows; ++r) {
                const float *one = terms + int64_t{2} * r * PIECE, *two = one + PIECE;
                float* y = out + int64_t{first[e] + r} * n_out + o;
                for (int i = 0; i < piece.n_out; ++i) y[i] = one[i] + two[i];
            }
        }
    }
}

/// out[r] = sum over its experts, best first, of weight * item.
void CpuOps::mix_items(const ExpertsOp& op, int rows) {
    const int k = op.shape.n_used, n = op.down->first.n_out;
    const auto [first, last] = floats_share(int64_t{rows} * n);
    for (int64_t at = first; at < last;) {
        const int64_t r = at / n, end = std::min(last, (r + 1) * n);
        for (int j = 0; j < k; ++j) {
            const float weight = s_.expert_weights_[r * k + j];
            const float* item = s_.item_out_.data() + int64_t{s_.item_[r * k + j]} * n;
            for (int64_t i = at; i < end; ++i)
                op.out[i] = (j == 0 ? 0.0f : op.out[i]) + weight * item[i - r * n];
        }
        at = end;
    }
}

void CpuOps::experts(const ExpertsOp& op, int rows) {
    route(op, rows);
    me_.meet();
    if (me_.index == 0) sort_items(op.shape, rows);
    me_.meet();
    place_inputs(op, rows);
    me_.meet();
    multiply_items(*op.gate, op.shape.n, s_.item_gate_.data());
    multiply_items(*op.up, op.shape.n, s_.item_up_.data());
    me_.meet();
    activate_items(op, rows);
    me_.meet();
    multiply_items_fine(*op.down, op.shape.n, s_.item_out_.data());
    me_.meet();
    mix_items(op, rows);
    me_.meet();
    note(KernelKind::experts);
}

}  // namespace strata
