/// Q4_K, Q5_K, Q6_K weights times Q8_256 rows (blocks.h, activations.h): value = d * sc_j * q - dmin * m_j,
/// or d * sc_j * (q - 32).
///
/// Order: a block's products with its activations, its scales in them (Q6_K: and its offset), add up to whole
/// numbers in eight lanes, exactly: lane l holds the quads at 4 l of every 32 bytes. These times d_w * d_x go
/// to eight partial sums; then, where there are mins, m_j times the activations' sum of group j, in lane j,
/// times -dmin * d_x, to the same. Blocks ascending, one fused multiply-add each; then the tree of sum.
namespace strata::cpu {
namespace {

struct Unpacked {
    Unit w[UNITS], scale[2];  // scales of the even and of the odd groups
    Factors factors;          // mins, or Q6_K's scales
    V8 d, less_dmin;
};
struct Q4_KBlocks {
    static constexpr int BYTES = 144, ADDED = 4;
    static constexpr bool HAS_MIN = true;
    static inline void unpack(const uint8_t* p, Unpacked& out) {
        uint32_t sc[2], m[2];
        blocks::unpack_scales(p + 4, sc, m);
        unpack_nibbles(p + 16, out.w);
        spread_scales(sc, out.scale);
        out.factors = min_factors(m);
        out.d = fill8_f16(p);
        out.less_dmin = times8(fill8_f16(p + 2), fill8(-1.0f));
    }
};
struct Q5_KBlocks {
    static constexpr int BYTES = 176, ADDED = 4;
    static constexpr bool HAS_MIN = true;
    static inline void unpack(const uint8_t* p, Unpacked& out) {
        uint32_t sc[2], m[2];
        blocks::unpack_scales(p + 4, sc, m);
        unpack_nibbles(p + 48, out.w);
        add_fifth_bits(p + 16, out.w);
        spread_scales(sc, out.scale);
        out.factors = min_factors(m);
        out.d = fill8_f16(p);
        out.less_dmin = times8(fill8_f16(p + 2), fill8(-1.0f));
    }
};
struct Q6_KBlocks {
    static constexpr int BYTES = 210, ADDED = 2;
    static constexpr bool HAS_MIN = false;
    static inline void unpack(const uint8_t* p, Unpacked& out) {
        unpack_six_bits(p, p + 128, out.w);
        out.factors = scale_factors(p + 192);
        spread_scales(out.factors, out.scale);
        out.d = fill8_f16(p + 208);
    }
};

template <typename W>
struct Blocks256 {
    static constexpr int ROWS = ROWS_256;

    template <int R>
    [[gnu::flatten]] static void product(const Product& a) {
        const Q8_256Layout layout(a.n_in);
        const int n_blocks = a.n_in / 256;
        for (int o = a.begin; o < a.end; ++o) {
            V8 sums[R];
            for (int r = 0; r < R; ++r) sums[r] = fill8(0.0f);
            const uint8_t* w = a.weights + static_cast<size_t>(o) * a.row_bytes;
            for (int b = 0; b < n_blocks; ++b, w += W::BYTES) {
                for (int line = 0; line < W::BYTES; line += 64) prefetch(w + line + AHEAD_BYTES);
                Unpacked block;
                W::unpack(w, block);
                for (int r = 0; r < R; ++r) add(a.x + r * a.x_stride, layout, b, block, sums[r]);
            }
            for (int r = 0; r < R; ++r) a.y[r * a.y_stride + o] = sum(sums[r]);
        }
    }

    static inline void add(const uint8_t* row, const Q8_256Layout& layout, int b, const Unpacked& w,
                           V8& sums) {
        const V8 d_x = fill8(reinterpret_cast<const float*>(row)[b]);
        const auto* x_sums = reinterpret_cast<const int16_t*>(row + layout.sums) + 16 * b;
        const auto* q = reinterpret_cast<const int8_t*>(row + layout.q) + 256 * b;
        const Sums start = W::HAS_MIN ? no_sums() : offset_sums(w.factors, x_sums);
        sums = fma(to_float(scaled_dot<W::ADDED>(start, w.w, w.scale, q)), times8(w.d, d_x), sums);
        if (W::HAS_MIN) sums = fma(dot_sums(w.factors, x_sums), times8(w.less_dmin, d_x), sums);
    }
};

}  // namespace
}  // namespace strata::cpu
