/// One token through one head of the gated delta rule, state s [k_dim, v_dim]:
///   s' = decay * s;  d = beta * (v - s'^T k);  s_out = s' + k d^T;  o = s_out^T q
/// Lanes run over v_dim, up to 32 at a time, so that the second pass finds those columns of the state in the
/// cache. Order: k ascending, one fused multiply-add each; s'^T k is taken as decay * (s^T k).
namespace strata::cpu {
namespace {

/// N x 16 lanes from column j on, the last 16 of them `left`.
template <int N>
inline void delta_columns(const DeltaStep& a, int j, int left) {
    const auto width = [&](int n) { return n + 1 < N ? 16 : left; };
    V16 along[N], delta[N], out[N];
    for (int n = 0; n < N; ++n) along[n] = out[n] = fill16(0.0f);
    for (int k = 0; k < a.k_dim; ++k) {
        const float* s = a.s_in + static_cast<int64_t>(k) * a.v_dim + j;
        const V16 key = fill16(a.k[k]);
        for (int n = 0; n < N; ++n) along[n] = fma(load16(s + 16 * n, width(n)), key, along[n]);
    }
    const V16 decay = fill16(a.decay), beta = fill16(a.beta);
    for (int n = 0; n < N; ++n) delta[n] = beta * (load16(a.v + j + 16 * n, width(n)) - decay * along[n]);
    for (int k = 0; k < a.k_dim; ++k) {
        const int64_t at = static_cast<int64_t>(k) * a.v_dim + j;
        const V16 key = fill16(a.k[k]), query = fill16(a.o ? a.q[k] : 0.0f);
        for (int n = 0; n < N; ++n) {
            const V16 s = fma(key, delta[n], decay * load16(a.s_in + at + 16 * n, width(n)));
            store16(a.s_out + at + 16 * n, width(n), s);
            out[n] = fma(s, query, out[n]);
        }
    }
    if (!a.o) return;
    for (int n = 0; n < N; ++n) store16(a.o + j + 16 * n, width(n), out[n]);
}

void delta_step(const DeltaStep& a) {
    int j = 0;
    for (; j + 32 <= a.v_dim; j += 32) delta_columns<2>(a, j, 16);
    for (; j < a.v_dim; j += 16) delta_columns<1>(a, j, a.v_dim - j < 16 ? a.v_dim - j : 16);
}

}  // namespace
}  // namespace strata::cpu
