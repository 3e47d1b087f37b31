/// softmax(scale * q k^T) v over the cells of one kv head, for some queries, each with its own number of
/// visible cells.
///
/// Cells are taken in blocks of ATTENTION_BLOCK from position 0; after each block a query holds the running
/// maximum m, the sum l of exp(score - m) and out = sum of exp(score - m) * v (online softmax: a larger m
/// scales l and out down). Within a block, eight cells at a time are widened to float32 once and used by
/// every query. Order: q k^T element i to partial sum i % 16, then the tree; l: cell c of the block to
/// partial sum c % 16, the tree, then added to the running l; out: cells ascending, one fused multiply-add
/// each. Nothing depends on other queries.
namespace strata::cpu {
namespace {

constexpr int CELLS = 8;

/// Eight rows of keys or values as float32: those of the cache itself, or widened into `wide`. Rows from n on
/// repeat the last one.
struct Tile {
    const float* row[CELLS];
};
inline void widen(const uint8_t* cell, int dim, float* out) {
    int i = 0;
    for (; i + 16 <= dim; i += 16) store16(out + i, load16_f16(cell + 2 * i));
    if (i == dim) return;
    uint8_t last[32] = {};
    std::memcpy(last, cell + 2 * i, static_cast<size_t>(dim - i) * 2);
    store16(out + i, dim - i, load16_f16(last));
}
inline Tile tile(const void* cells, KvType type, int64_t first, int n, int dim, float* wide) {
    Tile out;
    for (int c = 0; c < CELLS; ++c) {
        if (c >= n) {
            out.row[c] = out.row[n - 1];
        } else if (type == KvType::F32) {
            out.row[c] = static_cast<const float*>(cells) + (first + c) * dim;
        } else {
            widen(static_cast<const uint8_t*>(cells) + (first + c) * dim * 2, dim, wide + c * dim);
            out.row[c] = wide + c * dim;
        }
    }
    return out;
}

/// scores[c] = scale * q k_c for eight cells.
inline void score(const float* q, const Tile& k, int dim, float scale, float* scores) {
    V8 sums[CELLS];
    for (int c = 0; c < CELLS; c += 4) {
        V16 s[4] = {fill16(0.0f), fill16(0.0f), fill16(0.0f), fill16(0.0f)};
        for (int i = 0; i < dim; i += 16) {
            const V16 part = load16(q + i, dim - i);
            for (int j = 0; j < 4; ++j) s[j] = fma(part, load16(k.row[c + j] + i, dim - i), s[j]);
        }
        for (int j = 0; j < 4; ++j) sums[c + j] = fold(s[j]);
    }
    sum_each(sums, scores);
    for (int c = 0; c < CELLS; ++c) scores[c] *= scale;
}

/// out += p_c v_c for the first n of eight cells.
inline void add_values(const float* p, const Tile& v, int n, int dim, float* out) {
    for (int i = 0; i < dim; i += 16) {
        V16 total = load16(out + i, dim - i);
        for (int c = 0; c < n; ++c) total = fma(fill16(p[c]), load16(v.row[c] + i, dim - i), total);
        store16(out + i, dim - i, total);
    }
}

struct Running {
    float max, sum;
};

/// Scores of a block -> weights, m and l brought up to date; out scaled to the new m.
inline void renew(float* scores, int visible, Running& run, float* out, int v_dim) {
    for (int c = visible; c < ATTENTION_BLOCK; ++c) scores[c] = -__builtin_inff();
    float most = run.max;
    for (int c = 0; c < visible; ++c) most = scores[c] > most ? scores[c] : most;

    V16 total = fill16(0.0f);
    for (int c = 0; c < ATTENTION_BLOCK; c += 16) {
        const V16 weights = exp16(load16(scores + c) - fill16(most));
        store16(scores + c, weights);
        total = total + weights;
    }
    float factor[16];
    store16(factor, exp16(fill16(run.max - most)));
    run = {most, fma(run.sum, factor[0], sum(total))};
    for (int i = 0; i < v_dim; i += 16)
        store16(out + i, v_dim - i, load16(out + i, v_dim - i) * fill16(factor[0]));
}

void attention(const Attention& a) {
    float* scores = a.scratch;  // [n_queries, ATTENTION_BLOCK]
    auto* running = reinterpret_cast<Running*>(scores + static_cast<int64_t>(a.n_queries) * ATTENTION_BLOCK);
    auto* wide = reinterpret_cast<float*>(running + a.n_queries);  // [CELLS, max(head_dim, v_dim)]
    int cells = 0;
    for (int i = 0; i < a.n_queries; ++i) {
        cells = a.n_visible[i] > cells ? a.n_visible[i] : cells;
        running[i] = {-__builtin_inff(), 0.0f};
        std::memset(a.out + i * a.out_stride, 0, static_cast<size_t>(a.v_dim) * sizeof(float));
    }
    const auto within = [](int n, int limit) { return n < limit ? n : limit; };

    for (int block = 0; block < cells; block += ATTENTION_BLOCK) {
        const int n = within(cells - block, ATTENTION_BLOCK);
        for (int c = 0; c < n; c += CELLS) {
            const Tile keys = tile(a.k, a.kv_type, block + c, within(n - c, CELLS), a.head_dim, wide);
            for (int i = 0; i < a.n_queries; ++i)
                if (a.n_visible[i] > block + c)
                    score(a.q + i * a.q_stride, keys, a.head_dim, a.scale, scores + i * ATTENTION_BLOCK + c);
        }
        for (int i = 0; i < a.n_queries; ++i)
            if (a.n_visible[i] > block)
                renew(scores + i * ATTENTION_BLOCK, within(a.n_visible[i] - block, ATTENTION_BLOCK),
                      running[i], a.out + i * a.out_stride, a.v_dim);
        for (int c = 0; c < n; c += CELLS) {
            const Tile values = tile(a.v, a.kv_type, block + c, within(n - c, CELLS), a.v_dim, wide);
            for (int i = 0; i < a.n_queries; ++i)
                if (a.n_visible[i] > block + c)
                    add_values(scores + i * ATTENTION_BLOCK + c, values,
                               within(a.n_visible[i] - block - c, CELLS), a.v_dim, a.out + i * a.out_stride);
        }
    }
    for (int i = 0; i < a.n_queries; ++i) {
        float* out = a.out + i * a.out_stride;
        for (int d = 0; d < a.v_dim; d += 16)
            store16(out + d, a.v_dim - d, load16(out + d, a.v_dim - d) / fill16(running[i].sum));
    }
}

}  // namespace
}  // namespace strata::cpu
