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
/// Weights are asked for, into the second-level cache, this far ahead: the hardware's prefetcher stops at each page.
constexpr size_t AHEAD_BYTES = 2048;

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
                std::memcpy(last, w + static_cast<size_t>(i) * W::BYTES, static_cast<size_t>(a.n_in - i) * W::BYTES);
                const V16 weights = W::load(last);
                for (int r = 0; r < R; ++r) sums[r] = fma(weights, load16(x_row(a, r) + i, a.n_in - i), sums[r]);
            }
            for (int r = 0; r < R; ++r) a.y[r * a.y_stride + o] = sum(sums[r]);
        }
    }
    static const float* x_row(const Product& a, int r) { return reinterpret_cast<const float*>(a.x + r * a.x_stride); }
};

// ---- Blocks of 32: value = d * (q - offset) or d * q + m --------------------------------------------------------------
// A block's products with its activations add up to one whole number, offset included, exactly. That times d_w * d_x
// (rounded once) goes to partial sum b % 16, then m_w times the activations' sum to the same; blocks ascending, one fused
// multiply-add each; then lanes i and i + 8, then the tree. LANES blocks are unpacked side by side and serve all rows. Where
// fewer are left, the last one stands in for the missing ones, with scales of zero; + 0 at the end, so that no sign of a
// zero tells of it.

/// Where block i of LANES is.
struct InRow {
    const uint8_t* first;
    int64_t bytes;
    const uint8_t* operator()(int i) const { return first + i * bytes; }
};
struct InRest {
    const uint8_t* first;
    const int64_t* offset;  // [LANES]
    const uint8_t* operator()(int i) const { return first + offset[i]; }
};

struct Q4_0Blocks {
    static constexpr int BYTES = 18;
    static constexpr bool HAS_MIN = false;
    template <typename At>
    static Small<8> load(const At& at) { return {nibbles(at, 2)}; }
    static Whole total(const Small<8>& w, const int8_t* x, const int32_t* sums) { return less_shifted<3>(dot(w, x), sums); }
};
struct Q4_1Blocks {
    static constexpr int BYTES = 20;
    static constexpr bool HAS_MIN = true;
    template <typename At>
    static Small<8> load(const At& at) { return {nibbles(at, 4)}; }
    static Whole total(const Small<8>& w, const int8_t* x, const int32_t*) { return dot(w, x); }
};
struct Q5_0Blocks {
    static constexpr int BYTES = 22;
    static constexpr bool HAS_MIN = false;
    template <typename At>
    static Small<4> load(const At& at) { return {with_fifth_bits(nibbles(at, 6), at, 2)}; }
    static Whole total(const Small<4>& w, const int8_t* x, const int32_t* sums) { return less_shifted<4>(dot(w, x), sums); }
};
struct Q5_1Blocks {
    static constexpr int BYTES = 24;
    static constexpr bool HAS_MIN = true;
    template <typename At>
    static Small<4> load(const At& at) { return {with_fifth_bits(nibbles(at, 8), at, 4)}; }
    static Whole total(const Small<4>& w, const int8_t* x, const int32_t*) { return dot(w, x); }
};
struct Q8_0Blocks {
    static constexpr int BYTES = 34;
    static constexpr bool HAS_MIN = false;
    template <typename At>
    static Signed load(const At& at) { return as_signed(bytes32(at, 2)); }
    static Whole total(const Signed& w, const int8_t* x, const int32_t* sums) { return dot(w, x, sums); }
};

template <typename W>
struct Blocks32 {
    static constexpr int ROWS = ROWS_32, PARTS = 16 / LANES;

    template <int R>
    [[gnu::flatten]] static void product(const Product& a) {
        const Q8_32Layout layout(a.n_in);
        const int n_blocks = a.n_in / 32, whole = n_blocks / 16 * 16, left = n_blocks % LANES;
        int64_t rest[LANES];
        for (int i = 0; i < LANES; ++i) rest[i] = static_cast<int64_t>(i < left ? i : left - 1) * W::BYTES;
        for (int o = a.begin; o < a.end; ++o) {
            Lanes sums[PARTS][R];
            for (int part = 0; part < PARTS; ++part)
                for (int r = 0; r < R; ++r) sums[part][r] = fill_lanes(0.0f);
            const uint8_t* w = a.weights + static_cast<size_t>(o) * a.row_bytes;
            for (int b = 0; b < whole; b += 16)
                for (int part = 0; part < PARTS; ++part, w += LANES * W::BYTES) {
                    for (int at = 0; at < LANES * W::BYTES; at += 64) prefetch(w + at + AHEAD_BYTES);
                    add<R>(a, layout, InRow{w, W::BYTES}, LANES, b + part * LANES, sums[part]);
                }
            int b = whole, part = 0;
            prefetch(w + AHEAD_BYTES);
            for (; b + LANES <= n_blocks; b += LANES, w += LANES * W::BYTES)
                add<R>(a, layout, InRow{w, W::BYTES}, LANES, b, sums[part++]);
            if (b < n_blocks) add<R>(a, layout, InRest{w, rest}, n_blocks - b, b, sums[part]);
            for (int r = 0; r < R; ++r) {
                Lanes lanes[PARTS];
                for (int part = 0; part < PARTS; ++part) lanes[part] = sums[part][r];
                a.y[r * a.y_stride + o] = sum(fold(lanes)) + 0.0f;
            }
        }
    }

    /// Blocks b .. b + n - 1.
    template <int R, typename At>
    static inline void add(const Product& a, const Q8_32Layout& layout, const At& at, int n, int b, Lanes* sums) {
        const auto weights = W::load(at);
        const Lanes d = first_lanes(heads(at, 0), n), m = W::HAS_MIN ? first_lanes(heads(at, 2), n) : d;
        const size_t q = layout.q + 512 * static_cast<size_t>(b / 16) + 4 * static_cast<size_t>(b % 16);
        for (int r = 0; r < R; ++r) {
            const uint8_t* row = a.x + r * a.x_stride;
            const auto* d_x = reinterpret_cast<const float*>(row) + b;
            const auto* x_sums = reinterpret_cast<const float*>(row + layout.sums) + b;
            const auto* whole_sums = reinterpret_cast<const int32_t*>(row + layout.whole_sums) + b;
            const Whole total = W::total(weights, reinterpret_cast<const int8_t*>(row + q), whole_sums);
            sums[r] = fma(to_lanes(total), times(d, load_lanes(d_x)), sums[r]);
            if (W::HAS_MIN) sums[r] = fma(m, load_lanes(x_sums), sums[r]);
        }
    }
};

// ---- Blocks of 256: value = d * sc_j * q - dmin * m_j, or d * sc_j * (q - 32) ----------------------------------------
// A block's products with its activations, its scales in them (Q6_K: and its offset), add up to whole numbers in eight
// lanes (activations.h: lane l holds the quads at 4 l of every 32 bytes); these times d_w * d_x go to eight partial sums.
// Then, where there are mins, m_j times the activations' sum of group j, in lane j, times -dmin * d_x, to the same. Blocks
// ascending, one fused multiply-add each; then the tree.

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

    static inline void add(const uint8_t* row, const Q8_256Layout& layout, int b, const Unpacked& w, V8& sums) {
        const V8 d_x = fill8(reinterpret_cast<const float*>(row)[b]);
        const auto* x_sums = reinterpret_cast<const int16_t*>(row + layout.sums) + 16 * b;
        const auto* q = reinterpret_cast<const int8_t*>(row + layout.q) + 256 * b;
        const Sums start = W::HAS_MIN ? no_sums() : offset_sums(w.factors, x_sums);
        sums = fma(to_float(scaled_dot<W::ADDED>(start, w.w, w.scale, q)), times8(w.d, d_x), sums);
        if (W::HAS_MIN) sums = fma(dot_sums(w.factors, x_sums), times8(w.less_dmin, d_x), sums);
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
