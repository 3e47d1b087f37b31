/// Weights in blocks of 256 times Q8_256 rows (blocks.h, activations.h): value = d * sc_j * q - dmin * m_j,
/// d * sc_j * (q - offset) or d * sc_j * v.
///
/// Order: a block's products with its activations, its scales in them (and its offset, where it has one), add
/// up to whole numbers in eight lanes, exactly: lane l holds the quads at 4 l of every 32 bytes. These times
/// d_w * d_x go to eight partial sums; then, where there are mins, m_j times the activations' sum of group j
/// (or of two groups of 16), in lane j, times -dmin * d_x, to the same. Blocks ascending, one fused
/// multiply-add each; then the tree of sum.
namespace strata::cpu {
namespace {

/// What a weight is beside its scale: unsigned with mins, unsigned less an offset, or signed.
enum class Form { mins, offset, with_sign };

struct Unpacked {
    Unit w[UNITS], scale[2];  // scales of the even and of the odd groups
    Factors factors;          // mins; of weights with an offset their scales
    V8 d, less_dmin;
    void set_scales(Factors sixteen) {
        factors = sixteen;
        spread_scales(sixteen, scale);
    }
};
struct Q2_KBlocks {
    static constexpr int BYTES = 84, ADDED = 4;
    static constexpr Form FORM = Form::mins;
    static inline void unpack(const uint8_t* p, Unpacked& out) {
        unpack_two_bits(p + 16, out.w);
        spread_scales(low_factors(p), out.scale);
        out.factors = high_factors(p);
        out.d = fill8_f16(p + 80);
        out.less_dmin = times8(fill8_f16(p + 82), fill8(-1.0f));
    }
};
struct Q3_KBlocks {
    static constexpr int BYTES = 110, ADDED = 4, OFFSET_SHIFT = 2;
    static constexpr Form FORM = Form::offset;
    static inline void unpack(const uint8_t* p, Unpacked& out) {
        uint64_t scales[2];
        blocks::unpack_six_bit_scales(p + 96, scales);
        unpack_three_bits(p + 32, p, out.w);
        out.set_scales(scale_factors(scales[0], scales[1]));
        out.d = fill8_f16(p + 108);
    }
};
struct Q4_KBlocks {
    static constexpr int BYTES = 144, ADDED = 4;
    static constexpr Form FORM = Form::mins;
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
    static constexpr Form FORM = Form::mins;
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
    static constexpr int BYTES = 210, ADDED = 2, OFFSET_SHIFT = 5;
    static constexpr Form FORM = Form::offset;
    static inline void unpack(const uint8_t* p, Unpacked& out) {
        unpack_six_bits(p, p + 128, out.w);
        out.set_scales(scale_factors(p + 192));
        out.d = fill8_f16(p + 208);
    }
};
struct IQ4_XSBlocks {
    static constexpr int BYTES = 136, ADDED = 1;
    static constexpr Form FORM = Form::with_sign;
    static inline void unpack(const uint8_t* p, Unpacked& out) {
        unpack_levels(p + 8, out.w);
        const uint64_t low = blocks::eight_nibbles(blocks::read<uint32_t>(p + 4)),
                       high = blocks::eight_pairs(blocks::read<uint16_t>(p + 2));
        out.set_scales(scale_factors(blocks::less_32(low | high << 4)));
        out.d = fill8_f16(p);
    }
};
struct IQ3_SBlocks {
    static constexpr int BYTES = 110, ADDED = 4;
    static constexpr Form FORM = Form::with_sign;
    static inline void unpack(const uint8_t* p, Unpacked& out) {
        uint16_t entry[64];
        nine_bits(p + 2, p + 66, entry);
        uint32_t signs[8];
        std::memcpy(signs, p + 74, sizeof signs);
        unpack_entries(IQ3_S_ENTRIES, entry, signs, out.w);
        const uint64_t scales = blocks::eight_nibbles(blocks::read<uint32_t>(p + 106));
        out.set_scales(scale_factors(scales << 1 | 0x0101010101010101));
        out.d = fill8_f16(p);
    }
};
struct IQ3_XXSBlocks {
    static constexpr int BYTES = 98, ADDED = 2;
    static constexpr Form FORM = Form::with_sign;
    static inline void unpack(const uint8_t* p, Unpacked& out) {
        uint32_t signs[8];
        signs_of_sevens(p + 66, signs);
        unpack_entries(IQ3_XXS_ENTRIES, p + 2, signs, out.w);
        out.set_scales(odd_factors(p + 66));
        out.d = times8(fill8_f16(p), fill8(0.25f));
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
        sums = fma(to_float(dot(w, q, x_sums)), times8(w.d, d_x), sums);
        if (W::FORM == Form::mins) sums = fma(dot_sums(w.factors, x_sums), times8(w.less_dmin, d_x), sums);
    }

    static inline Sums dot(const Unpacked& w, const int8_t* q, const int16_t* x_sums) {
        if constexpr (W::FORM == Form::with_sign)
            return scaled_dot_signed<W::ADDED>(w.w, w.scale, q);
        else if constexpr (W::FORM == Form::offset)
            return scaled_dot<W::ADDED>(offset_sums<W::OFFSET_SHIFT>(w.factors, x_sums), w.w, w.scale, q);
        else
            return scaled_dot<W::ADDED>(no_sums(), w.w, w.scale, q);
    }
};

}  // namespace
}  // namespace strata::cpu
