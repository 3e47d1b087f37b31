/// Norms, gates, rope, the convolution, and what sampling needs: loops of 16 lanes, a last short step masked,
/// so that an element's result is the same wherever it stands. Sums: element i goes to partial sum i % 16,
/// ascending, then the tree of fold and sum. Float32 throughout.
namespace strata::cpu {
namespace {

/// e^x: x = n ln 2 + r, |r| <= ln 2 / 2, e^r by its series to r^7 / 7! (relative error below 2e-7). Zero
/// below -87, infinity above 88; NaN stays NaN.
inline V16 exp16(V16 x) {
    const V16 round = fill16(0x1.8p23f);
    const V16 shifted = fma(x, fill16(0x1.715476p0f), round), n = shifted - round;
    const V16 r = fma(n, fill16(2.12194440e-4f), fma(n, fill16(-0.693359375f), x));  // ln 2 in two parts
    constexpr float TERMS[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2, 1.0f, 1.0f};
    V16 series = fill16(1.0f / 5040);
    for (int i = 0; i < 7; ++i) series = fma(series, r, fill16(TERMS[i]));
    const V16 low = fill16(-87.0f), high = fill16(88.0f);
    const V16 value = where_less(x, low, fill16(0.0f), series * power_of_two(shifted));
    return where_less(high, x, fill16(__builtin_inff()), value);
}

/// 1 + e^-x, by which a sigmoid divides.
inline V16 sigmoid_divisor(V16 x) { return fill16(1.0f) + exp16(fill16(0.0f) - x); }
inline V16 silu16(V16 x) { return x / sigmoid_divisor(x); }

inline float sum(V16 a) { return sum(fold(a)); }

inline float sum_of_squares(const float* x, int n) {
    V16 squares = fill16(0.0f);
    for (int i = 0; i < n; i += 16) {
        const V16 v = load16(x + i, n - i);
        squares = fma(v, v, squares);
    }
    return sum(squares);
}

void rms_norm(const float* x, const float* w, int n, float eps, float* out) {
    if (n <= 0) return;
    const V16 scale = fill16(1.0f / __builtin_sqrtf(sum_of_squares(x, n) / static_cast<float>(n) + eps));
    for (int i = 0; i < n; i += 16) {
        const V16 normed = load16(x + i, n - i) * scale;
        store16(out + i, n - i, w ? normed * load16(w + i, n - i) : normed);
    }
}

void l2_norm(const float* x, int n, float eps, float scale, float* out) {
    const V16 factor = fill16(scale / __builtin_sqrtf(sum_of_squares(x, n) + eps));
    for (int i = 0; i < n; i += 16) store16(out + i, n - i, load16(x + i, n - i) * factor);
}

void add(float* x, const float* y, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) store16(x + i, n - i, load16(x + i, n - i) + load16(y + i, n - i));
}

void silu_mul(const float* gate, const float* up, float* out, int64_t n) {
    for (int64_t i = 0; i < n; i += 16)
        store16(out + i, n - i, silu16(load16(gate + i, n - i)) * load16(up + i, n - i));
}

void sigmoid_mul(const float* gate, const float* x, float* out, int64_t n) {
    for (int64_t i = 0; i < n; i += 16)
        store16(out + i, n - i, load16(x + i, n - i) / sigmoid_divisor(load16(gate + i, n - i)));
}

/// (a, b) -> (a cos - b sin, a sin + b cos), each product and sum rounded: vector and scalar agree.
void rope(float* x, int n_rot, bool adjacent, const float* cos, const float* sin) {
    const int half = n_rot / 2;
    if (adjacent) {
        for (int i = 0; i < half; ++i) {
            const float a = x[2 * i], b = x[2 * i + 1];
            x[2 * i] = a * cos[i] - b * sin[i];
            x[2 * i + 1] = a * sin[i] + b * cos[i];
        }
        return;
    }
    for (int i = 0; i < half; i += 16) {
        const int left = half - i;
        const V16 a = load16(x + i, left), b = load16(x + half + i, left);
        const V16 c = load16(cos + i, left), s = load16(sin + i, left);
        store16(x + i, left, a * c - b * s);
        store16(x + half + i, left, a * s + b * c);
    }
}

/// Taps in ascending order, oldest first, one fused multiply-add each.
void conv_silu(const float* const* u, const float* w, int taps, int channels, int begin, int end,
               float* out) {
    for (int c = begin; c < end; c += 16) {
        V16 total = fill16(0.0f);
        for (int j = 0; j < taps; ++j)
            total = fma(load16(w + static_cast<int64_t>(j) * channels + c, end - c),
                        load16(u[j] + c, end - c), total);
        store16(out + c, end - c, silu16(total));
    }
}

void store_f16(const float* x, int n, uint16_t* out) {
    for (int i = 0; i < n; i += 16) {
        if (n - i >= 16) {
            store16_f16(out + i, load16(x + i));
        } else {
            uint16_t last[16];
            store16_f16(last, load16(x + i, n - i));
            std::memcpy(out + i, last, static_cast<size_t>(n - i) * sizeof *out);
        }
    }
}

/// The largest value first, then the first place that holds it.
int argmax(const float* x, int n) {
    const int whole = n / 16 * 16;
    float best = -__builtin_inff();
    V16 most = fill16(best);
    for (int i = 0; i < whole; i += 16) most = max_or(load16(x + i), most);
    float lanes[16];
    store16(lanes, most);
    for (const float lane : lanes) best = lane > best ? lane : best;
    for (int i = whole; i < n; ++i) best = x[i] > best ? x[i] : best;

    int i = 0;
    while (i < whole && !any_equal(load16(x + i), fill16(best))) i += 16;
    for (; i < n; ++i)
        if (x[i] == best) return i;
    return 0;  // all of them are NaN
}

float exp_sum(const float* x, int n, float shift, float scale, float* out) {
    V16 total = fill16(0.0f);
    for (int i = 0; i < n; i += 16) {
        float part[16] = {};
        const V16 e = exp16(fill16(scale) * (load16(x + i, n - i) - fill16(shift)));
        if (out) store16(out + i, n - i, e);
        if (n - i >= 16) {
            total = total + e;
        } else {  // lanes past the end add nothing
            store16(part, n - i, e);
            total = total + load16(part);
        }
    }
    return sum(total);
}

}  // namespace
}  // namespace strata::cpu
