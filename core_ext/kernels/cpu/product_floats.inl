/// F32, F16 and BF16 weights [n_out, n_in] times float32 rows.
///
/// Order: element i goes to partial sum i % 16, ascending, one fused multiply-add each; then the tree of fold
/// and sum.
namespace strata::cpu {
namespace {

struct F32Weights {
    static constexpr int BYTES = 4;
    static V16 load(const uint8_t* p) { return load16_f32(p); }
};
struct F16Weights {
    static constexpr int BYTES = 2;
    static V16 load(const uint8_t* p) { return load16_f16(p); }
};
struct BF16Weights {
    static constexpr int BYTES = 2;
    static V16 load(const uint8_t* p) { return load16_bf16(p); }
};

template <typename W>
struct Floats {
    static constexpr int ROWS = ROWS_FLOAT;

    template <int R>
    [[gnu::flatten]] static void product(const Product& a) {
        for (int o = a.begin; o < a.end; ++o) {
            const uint8_t* w = a.weights + static_cast<size_t>(o) * a.row_bytes;
            V16 sums[R];
            for (int r = 0; r < R; ++r) sums[r] = fill16(0.0f);
            int i = 0;
            for (; i + 16 <= a.n_in; i += 16) {
                const V16 weights = W::load(w + static_cast<size_t>(i) * W::BYTES);
                prefetch(w + static_cast<size_t>(i) * W::BYTES + AHEAD_BYTES);
                for (int r = 0; r < R; ++r) sums[r] = fma(weights, load16(x_row(a, r) + i), sums[r]);
            }
            if (i < a.n_in) {  // zeros behind the end
                uint8_t last[64] = {};
                std::memcpy(last, w + static_cast<size_t>(i) * W::BYTES,
                            static_cast<size_t>(a.n_in - i) * W::BYTES);
                const V16 weights = W::load(last);
                for (int r = 0; r < R; ++r)
                    sums[r] = fma(weights, load16(x_row(a, r) + i, a.n_in - i), sums[r]);
            }
            for (int r = 0; r < R; ++r) a.y[r * a.y_stride + o] = sum(sums[r]);
        }
    }
    static const float* x_row(const Product& a, int r) {
        return reinterpret_cast<const float*>(a.x + r * a.x_stride);
    }
};

}  // namespace
}  // namespace strata::cpu
