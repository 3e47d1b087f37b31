/// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL weights times Q8_32 rows (blocks.h, activations.h): value = d * (q -
/// offset), d * q + m or d * level.
///
/// Order: a block's products with its activations add up to one whole number, offset included, exactly. That
/// times d_w * d_x (rounded once) goes to partial sum b % 16 of block b, then m_w times the activations' sum
/// to the same; blocks ascending, one fused multiply-add each; then the tree of fold and sum. + 0 at the end,
/// so that no sign of a zero tells how many lanes there were.
///
/// LANES blocks are unpacked side by side and serve all rows. Where fewer are left in a row, the last one
/// stands in for the missing ones, with scales of zero.
namespace strata::cpu {
namespace {

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
    static Small<8> load(const At& at) {
        return {nibbles(at, 2)};
    }
    static Whole total(const Small<8>& w, const int8_t* x, const int32_t* sums) {
        return less_shifted<3>(dot(w, x), sums);
    }
};
struct Q4_1Blocks {
    static constexpr int BYTES = 20;
    static constexpr bool HAS_MIN = true;
    template <typename At>
    static Small<8> load(const At& at) {
        return {nibbles(at, 4)};
    }
    static Whole total(const Small<8>& w, const int8_t* x, const int32_t*) { return dot(w, x); }
};
struct Q5_0Blocks {
    static constexpr int BYTES = 22;
    static constexpr bool HAS_MIN = false;
    template <typename At>
    static Small<4> load(const At& at) {
        return {with_fifth_bits(nibbles(at, 6), at, 2)};
    }
    static Whole total(const Small<4>& w, const int8_t* x, const int32_t* sums) {
        return less_shifted<4>(dot(w, x), sums);
    }
};
struct Q5_1Blocks {
    static constexpr int BYTES = 24;
    static constexpr bool HAS_MIN = true;
    template <typename At>
    static Small<4> load(const At& at) {
        return {with_fifth_bits(nibbles(at, 8), at, 4)};
    }
    static Whole total(const Small<4>& w, const int8_t* x, const int32_t*) { return dot(w, x); }
};
struct Q8_0Blocks {
    static constexpr int BYTES = 34;
    static constexpr bool HAS_MIN = false;
    template <typename At>
    static Signed load(const At& at) {
        return as_signed(bytes32(at, 2));
    }
    static Whole total(const Signed& w, const int8_t* x, const int32_t* sums) { return dot(w, x, sums); }
};

struct IQ4_NLBlocks {
    static constexpr int BYTES = 18;
    static constexpr bool HAS_MIN = false;
    template <typename At>
    static Signed load(const At& at) {
        return as_signed(levels(nibbles(at, 2)));
    }
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
    static inline void add(const Product& a, const Q8_32Layout& layout, const At& at, int n, int b,
                           Lanes* sums) {
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

}  // namespace
}  // namespace strata::cpu
