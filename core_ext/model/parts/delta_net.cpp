#include "model/parts/delta_net.h"

namespace strata {

DeltaShape read_delta_shape(const GgufFile& file, const std::string& arch, bool interleaved) {
    const std::string ssm = arch + ".ssm.";
    const auto count = [&](const char* name, int64_t low, int64_t high) {
        return static_cast<int>(file.integer(ssm + name, low, high));
    };
    DeltaShape d;
    d.taps = count("conv_kernel", 2, 16);
    d.k_dim = d.v_dim = count("state_size", 1, 1024);
    d.n_k_heads = count("group_count", 1, 1 << 12);
    d.n_v_heads = count("time_step_rank", 1, 1 << 12);
    d.interleaved = interleaved;
    if (const int inner = count("inner_size", 1, 1 << 22); inner != d.v_dim * d.n_v_heads)
        file.fail("key " + ssm + "inner_size is " + std::to_string(inner) +
                  ", expected state_size * time_step_rank = " + std::to_string(d.v_dim * d.n_v_heads));
    if (d.n_v_heads % d.n_k_heads)
        file.fail("key " + ssm + "time_step_rank is " + std::to_string(d.n_v_heads) +
                  ", expected a multiple of group_count " + std::to_string(d.n_k_heads));
    return d;
}

std::vector<LayerKind> read_layer_kinds(const GgufFile& file, const std::string& arch, int n_layers) {
    const std::string key = arch + ".attention.recurrent_layers";
    const auto flags = file.integers(key, 4096);
    const int64_t interval = file.integer_or(arch + ".full_attention_interval", 4, 1, 4096);
    if (!flags.empty() && flags.size() < static_cast<size_t>(n_layers))
        file.fail("key " + key + " has " + std::to_string(flags.size()) + " entries, expected " +
                  std::to_string(n_layers));
    std::vector<LayerKind> kinds;
    for (int i = 0; i < n_layers; ++i) {
        const bool delta = flags.empty() ? (i + 1) % interval != 0 : flags[i] != 0;
        kinds.push_back(delta ? LayerKind::delta : LayerKind::attention);
    }
    return kinds;
}

DeltaNet::DeltaNet(const BlockTensors& in, DeltaInputs inputs)
    : dims_(in.dims), inner_(dims_.delta.n_v_heads * dims_.delta.v_dim), inputs_(std::move(inputs)) {
    const DeltaShape& d = dims_.delta;
    out_ = in.weight("ssm_out.weight", inner_, dims_.n_embd);
    dt_bias_ = in.vector("ssm_dt.bias", d.n_v_heads);
    ssm_a_ = in.vector("ssm_a", d.n_v_heads);
    norm_ = in.vector("ssm_norm.weight", d.v_dim);
    // The file holds [channels, taps]; the convolution walks over channels, so the taps become rows.
    const auto taps_last = in.matrix("ssm_conv1d.weight", d.taps, d.channels());
    conv_.resize(taps_last.size());
    for (int c = 0; c < d.channels(); ++c)
        for (int j = 0; j < d.taps; ++j)
            conv_[int64_t{j} * d.channels() + c] = taps_last[int64_t{c} * d.taps + j];
}

int64_t DeltaNet::scratch_floats(int rows) const {
    return 2 * taken(int64_t{rows} * inner_) + 2 * taken(int64_t{rows} * dims_.delta.n_v_heads);
}

uint64_t DeltaNet::row_bytes() const {
    return weight_bytes(inputs_.qkv) + weight_bytes(inputs_.z) + weight_bytes(inputs_.beta) +
           weight_bytes(inputs_.alpha) + weight_bytes(out_);
}

void DeltaNet::run(LayerState& state, const Batch& batch, int, const float* y, float* out, Workspace scratch,
                   Ops& ops) const {
    const DeltaShape& d = dims_.delta;
    const int rows = batch.rows;
    float* z = scratch.take(int64_t{rows} * inner_);
    float* beta = scratch.take(int64_t{rows} * d.n_v_heads);
    float* alpha = scratch.take(int64_t{rows} * d.n_v_heads);
    float* heads = scratch.take(int64_t{rows} * inner_);
    ops.project({{&inputs_.qkv, state.record.u, d.channels()},
                 {&inputs_.z, z, inner_},
                 {&inputs_.beta, beta, d.n_v_heads},
                 {&inputs_.alpha, alpha, d.n_v_heads}},
                y, rows);
    DeltaOp op;
    op.shape = d;
    op.z = z;
    op.b = beta;
    op.a = alpha;
    op.conv = conv_.data();
    op.dt_bias = dt_bias_.data();
    op.ssm_a = ssm_a_.data();
    op.norm = norm_.data();
    op.norm_eps = dims_.norm_eps;
    op.state = state.delta;
    op.record = state.record;
    op.advance = state.advance;
    op.out = heads;
    ops.delta(op, rows);
    ops.project({{&out_, out, dims_.n_embd, true}}, heads, rows);
}

}  // namespace strata
