/// y[r, o] = sum_i w[o, i] x[r, i]. Three families of products, each computing some rows at once from weights that are
/// unpacked once: floats (as they are), blocks of 32 and blocks of 256 (int8 activations). A family's `product<R>` takes
/// R rows and a range of outputs; here rows are cut into such groups, and, where there are several groups, outputs into
/// pieces whose weights stay in the first-level cache from one group to the next.
namespace strata::cpu {
namespace {

/// What one product call covers: outputs [begin, end) for its own rows.
struct Product {
    const uint8_t* weights;  // row 0's blocks, rows row_bytes apart
    size_t row_bytes;
    int n_in;
    const uint8_t* x;  // the group's first row
    size_t x_stride;   // bytes
    int begin, end;
    float* y;  // the group's first row
    size_t y_stride;
};

constexpr size_t PIECE_BYTES = 16384;
/// Weights are asked for this far ahead of their use: the hardware's own prefetcher stops at each page.
constexpr size_t AHEAD_BYTES = 1024;

// ---- Floats: element i goes to partial sum i % 16, ascending, one fused multiply-add each; then the tree. -----------

struct F32Weights {
    static constexpr int BYTES = 4;
    static V16 load(const uint8_t* p) { return load16(reinterpret_cast<const float*>(p)); }
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
    static constexpr int ROWS = ROWS_32;

    template <int R>
    static void product(const Product& a) {
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
                std::memcpy(last, w + static_cast<size_t>(i) * W::BYTES, static_cast<size_t>(a.n_in - i) * W::BYTES);
                const V16 weights = W::load(last);
                for (int r = 0; r < R; ++r) sums[r] = fma(weights, load16(x_row(a, r) + i, a.n_in - i), sums[r]);
            }
            for (int r = 0; r < R; ++r) a.y[r * a.y_stride + o] = sum(sums[r]);
        }
    }
    static const float* x_row(const Product& a, int r) { return reinterpret_cast<const float*>(a.x + r * a.x_stride); }
};

// ---- Blocks of 32: value = d * q + m --------------------------------------------------------------------------------
// Of block b, bytes 4j .. 4j+3 make a whole number, times d_w * d_x (rounded once) into partial sum 8 (b % 2) + j, blocks
// ascending, one fused multiply-add each. m_b * sums_b goes to partial sum b % 16 of a second set, which is added to the
// first at the end; then the tree. A row of an odd number of blocks is followed by one block of zeros.

struct Q4_0Blocks {
    static constexpr int BYTES = 18;
    static constexpr bool HAS_MIN = true;
    static Bytes load(const uint8_t* a, const uint8_t* b) { return nibbles(a + 2, b + 2); }
    static V16 mins(V16 d, const uint8_t*, int64_t) { return d * fill16(-8.0f); }
};
struct Q4_1Blocks {
    static constexpr int BYTES = 20;
    static constexpr bool HAS_MIN = true;
    static Bytes load(const uint8_t* a, const uint8_t* b) { return nibbles(a + 4, b + 4); }
    static V16 mins(V16, const uint8_t* p, int64_t stride) { return block_heads(p + 2, stride); }
};
struct Q5_0Blocks {
    static constexpr int BYTES = 22;
    static constexpr bool HAS_MIN = true;
    static Bytes load(const uint8_t* a, const uint8_t* b) { return nibbles(a + 6, b + 6) | fifth_bits(a + 2, b + 2); }
    static V16 mins(V16 d, const uint8_t*, int64_t) { return d * fill16(-16.0f); }
};
struct Q5_1Blocks {
    static constexpr int BYTES = 24;
    static constexpr bool HAS_MIN = true;
    static Bytes load(const uint8_t* a, const uint8_t* b) { return nibbles(a + 8, b + 8) | fifth_bits(a + 4, b + 4); }
    static V16 mins(V16, const uint8_t* p, int64_t stride) { return block_heads(p + 2, stride); }
};
struct Q8_0Blocks {
    static constexpr int BYTES = 34;
    static constexpr bool HAS_MIN = false;
    static SignedBytes load(const uint8_t* a, const uint8_t* b) { return as_signed(pair(a + 2, b + 2)); }
    static V16 mins(V16, const uint8_t*, int64_t) { return fill16(0.0f); }
};

constexpr uint8_t ZERO_BLOCK[34] = {};

template <typename W>
struct Blocks32 {
    static constexpr int ROWS = ROWS_32;

    template <int R>
    static void product(const Product& a) {
        const Q8_32Layout layout(a.n_in);
        for (int o = a.begin; o < a.end; ++o) {
            V16 sums[R], mins[R];
            for (int r = 0; r < R; ++r) sums[r] = mins[r] = fill16(0.0f);
            const uint8_t* w = a.weights + static_cast<size_t>(o) * a.row_bytes;
            int b = 0;
            for (; b + 16 <= a.n_in / 32; b += 16) step<R, true>(a, layout, w + b * W::BYTES, b, 16, sums, mins);
            if (b < a.n_in / 32) step<R, false>(a, layout, w + b * W::BYTES, b, a.n_in / 32 - b, sums, mins);
            for (int r = 0; r < R; ++r) a.y[r * a.y_stride + o] = sum(W::HAS_MIN ? sums[r] + mins[r] : sums[r]);
        }
    }

    /// Blocks b .. b + n - 1 at w; n is 16 where WHOLE.
    template <int R, bool WHOLE>
    static inline void step(const Product& a, const Q8_32Layout& layout, const uint8_t* w, int b, int n, V16* sums, V16* mins) {
        int64_t stride = W::BYTES;
        uint8_t heads[16 * 4] = {};  // d and m alone, of a last step of fewer blocks
        if (!WHOLE)
            for (int i = 0; i < n; ++i) std::memcpy(heads + 4 * i, w + i * W::BYTES, 4);
        const uint8_t* first_head = w;
        if (!WHOLE) first_head = heads, stride = 4;
        const V16 d = block_heads(first_head, stride), m = W::mins(d, first_head, stride);

        alignas(64) float scale[R][16];  // d_w * d_x
        for (int r = 0; r < R; ++r) {
            const uint8_t* x = a.x + r * a.x_stride;
            store16(scale[r], d * load16(reinterpret_cast<const float*>(x) + b));
            if (W::HAS_MIN) mins[r] = fma(m, load16(reinterpret_cast<const float*>(x + layout.sums) + b), mins[r]);
        }
        const int count = WHOLE ? 16 : n;
        for (int i = 0; i < count; i += 2) {
            const uint8_t* first = w + i * W::BYTES;
            const auto weights = W::load(first, WHOLE || i + 1 < n ? first + W::BYTES : ZERO_BLOCK);
            prefetch(first + AHEAD_BYTES);
            for (int r = 0; r < R; ++r) {
                const auto* q = reinterpret_cast<const int8_t*>(a.x + r * a.x_stride + layout.q) + 32 * (b + i);
                sums[r] = fma(dot(weights, q), pair_scale(scale[r] + i), sums[r]);
            }
        }
    }
};

// ---- Blocks of 256: value = d * sc_j * q - dmin * m_j, or d * sc_j * (q - 32) ----------------------------------------
// Of a block, bytes 4j .. 4j+3 of every 32 make one whole number with their scales in it, times d_w * d_x into partial
// sum j of 8; then, where there are mins, their products with the sums of activations, times -dmin * d_x, into the same
// (lane j: the mins of group j). Blocks ascending, one fused multiply-add each; then the tree.

struct Unpacked {
    Unit w[UNITS], scale[UNITS];
    Factors factors;  // mins, or Q6_K's scales
    float d, dmin;
};
struct Q4_KBlocks {
    static constexpr int BYTES = 144;
    static constexpr bool HAS_MIN = true;
    static inline void unpack(const uint8_t* p, Unpacked& out) {
        uint32_t sc[2], m[2];
        blocks::unpack_scales(p + 4, sc, m);
        unpack_nibbles(p + 16, out.w);
        spread_scales(sc, out.scale);
        out.factors = min_factors(m);
        out.d = blocks::read_f16(p);
        out.dmin = blocks::read_f16(p + 2);
    }
};
struct Q5_KBlocks {
    static constexpr int BYTES = 176;
    static constexpr bool HAS_MIN = true;
    static inline void unpack(const uint8_t* p, Unpacked& out) {
        uint32_t sc[2], m[2];
        blocks::unpack_scales(p + 4, sc, m);
        unpack_nibbles(p + 48, out.w);
        add_fifth_bits(p + 16, out.w);
        spread_scales(sc, out.scale);
        out.factors = min_factors(m);
        out.d = blocks::read_f16(p);
        out.dmin = blocks::read_f16(p + 2);
    }
};
struct Q6_KBlocks {
    static constexpr int BYTES = 210;
    static constexpr bool HAS_MIN = false;
    static inline void unpack(const uint8_t* p, Unpacked& out) {
        unpack_six_bits(p, p + 128, out.w);
        out.factors = scale_factors(p + 192);
        spread_scales(out.factors, out.scale);
        out.d = blocks::read_f16(p + 208);
    }
};

template <typename W>
struct Blocks256 {
    static constexpr int ROWS = ROWS_256;

    template <int R>
    static void product(const Product& a) {
        const Q8_256Layout layout(a.n_in);
        const int n_blocks = a.n_in / 256;
        for (int o = a.begin; o < a.end; ++o) {
            V8 sums[R];
            for (int r = 0; r < R; ++r) sums[r] = fill8(0.0f);
            const uint8_t* w = a.weights + static_cast<size_t>(o) * a.row_bytes;
            for (int b = 0; b < n_blocks; ++b, w += W::BYTES) {
                for (int line = 0; line < W::BYTES; line += 64) prefetch(w + line + AHEAD_BYTES);
                block<R>(a, layout, w, b, sums);
            }
            for (int r = 0; r < R; ++r) a.y[r * a.y_stride + o] = sum(sums[r]);
        }
    }

    template <int R>
    static inline void block(const Product& a, const Q8_256Layout& layout, const uint8_t* w, int b, V8* sums) {
        const auto x_sums = [&](int r) {
            return reinterpret_cast<const int16_t*>(a.x + r * a.x_stride + layout.sums) + 16 * b;
        };
        Unpacked from;
        W::unpack(w, from);
        Sums whole[R];
        for (int r = 0; r < R; ++r) whole[r] = W::HAS_MIN ? no_sums() : offset_sums(from.factors, x_sums(r));
        for (int u = 0; u < UNITS; ++u)
            for (int r = 0; r < R; ++r) {
                const auto* q = reinterpret_cast<const int8_t*>(a.x + r * a.x_stride + layout.q) + 256 * b + UNIT * u;
                whole[r] = add_scaled(whole[r], from.w[u], from.scale[u], q);
            }
        for (int r = 0; r < R; ++r) {
            const float d_x = reinterpret_cast<const float*>(a.x + r * a.x_stride)[b];
            sums[r] = fma(to_float(whole[r]), fill8(from.d * d_x), sums[r]);
            if (W::HAS_MIN) sums[r] = fma(dot_sums(from.factors, x_sums(r)), fill8(-(from.dmin * d_x)), sums[r]);
        }
    }
};

// ---- Groups of rows -------------------------------------------------------------------------------------------------

template <typename Family, int R>
inline void product_of(int rows, const Product& a) {
    if (rows == R) return Family::template product<R>(a);
    if constexpr (R > 1) product_of<Family, R - 1>(rows, a);
}

template <typename Family>
void groups(Product a, int rows) {
    constexpr int ROWS = Family::ROWS;
    const int begin = a.begin, end = a.end;
    size_t piece = PIECE_BYTES / (a.row_bytes ? a.row_bytes : 1) + 1;
    if (rows <= ROWS) piece = static_cast<size_t>(end - begin);
    const Product whole = a;
    for (size_t o = static_cast<size_t>(begin); o < static_cast<size_t>(end); o += piece) {
        a.begin = static_cast<int>(o);
        a.end = o + piece < static_cast<size_t>(end) ? static_cast<int>(o + piece) : end;
        for (int r = 0; r < rows; r += ROWS) {
            a.x = whole.x + static_cast<size_t>(r) * a.x_stride;
            a.y = whole.y + static_cast<size_t>(r) * a.y_stride;
            product_of<Family, ROWS>(rows - r < ROWS ? rows - r : ROWS, a);
        }
    }
}

void matmul(const Weight& w, const void* x, size_t x_stride, int rows, int out_begin, int out_end, float* y, size_t y_stride) {
    if (rows <= 0 || out_begin >= out_end) return;
    const Product a{static_cast<const uint8_t*>(w.data), w.row_bytes, w.n_in, static_cast<const uint8_t*>(x), x_stride,
                    out_begin, out_end, y, y_stride};
    switch (w.type) {
        case Type::F32: return groups<Floats<F32Weights>>(a, rows);
        case Type::F16: return groups<Floats<F16Weights>>(a, rows);
        case Type::BF16: return groups<Floats<BF16Weights>>(a, rows);
        case Type::Q4_0: return groups<Blocks32<Q4_0Blocks>>(a, rows);
        case Type::Q4_1: return groups<Blocks32<Q4_1Blocks>>(a, rows);
        case Type::Q5_0: return groups<Blocks32<Q5_0Blocks>>(a, rows);
        case Type::Q5_1: return groups<Blocks32<Q5_1Blocks>>(a, rows);
        case Type::Q8_0: return groups<Blocks32<Q8_0Blocks>>(a, rows);
        case Type::Q4_K: return groups<Blocks256<Q4_KBlocks>>(a, rows);
        case Type::Q5_K: return groups<Blocks256<Q5_KBlocks>>(a, rows);
        case Type::Q6_K: return groups<Blocks256<Q6_KBlocks>>(a, rows);
    }
}

}  // namespace
}  // namespace strata::cpu
