/// Activations to int8 (activations.h has the layouts and the rounding). A block looks at its own values
/// alone. A block whose largest value is below 1e-30 becomes zeros; NaN or infinity in a block makes its d
/// NaN or infinite, so that what comes of it is not finite either.
namespace strata::cpu {
namespace {

struct BlockScale {
    float d, inverse;
};
inline BlockScale block_scale(int32_t largest_bits) {
    float largest;
    std::memcpy(&largest, &largest_bits, sizeof largest);
    if (largest < 1e-30f) return {0.0f, 0.0f};
    return {largest / 127.0f, 127.0f / largest};
}

void quantize_32(const float* x, int n_in, uint8_t* out) {
    const Q8_32Layout layout(n_in);
    auto* d = reinterpret_cast<float*>(out);
    auto* sums = reinterpret_cast<float*>(out + layout.sums);
    auto* whole_sums = reinterpret_cast<int32_t*>(out + layout.whole_sums);
    for (int b = 0; b < layout.blocks; ++b) {
        const int at = 32 * b, left = n_in - at;
        const V16 first = load16(x + at, left < 0 ? 0 : left),
                  second = load16(x + at + 16, left < 16 ? 0 : left - 16);
        const BlockScale scale = block_scale(max_lane(max(magnitude_bits(first), magnitude_bits(second))));
        const I16 low = round_to_int8(first * fill16(scale.inverse)),
                  high = round_to_int8(second * fill16(scale.inverse));
        int8_t q[32];
        store_bytes(q, low);
        store_bytes(q + 16, high);
        uint8_t* group = out + layout.q + 512 * static_cast<size_t>(b / 16) + 4 * static_cast<size_t>(b % 16);
        for (int j = 0; j < 8; ++j) std::memcpy(group + 64 * j, q + 4 * j, 4);
        d[b] = scale.d;
        whole_sums[b] = sum(low) + sum(high);
        sums[b] = scale.d * static_cast<float>(whole_sums[b]);
    }
}

void quantize_256(const float* x, int n_in, uint8_t* out) {
    const Q8_256Layout layout(n_in);
    auto* d = reinterpret_cast<float*>(out);
    auto* sums = reinterpret_cast<int16_t*>(out + layout.sums);
    auto* q = reinterpret_cast<int8_t*>(out + layout.q);
    for (int b = 0; b < layout.blocks; ++b) {
        const int at = 256 * b, left = n_in - at;
        const auto part = [&](int i) { return load16(x + at + i, left < i ? 0 : left - i); };
        I16 most = magnitude_bits(part(0));
        for (int i = 16; i < 256; i += 16) most = max(most, magnitude_bits(part(i)));
        const BlockScale scale = block_scale(max_lane(most));
        for (int i = 0; i < 256; i += 16) {
            const I16 whole = round_to_int8(part(i) * fill16(scale.inverse));
            int8_t quads[16];
            store_bytes(quads, whole);
            for (int j = 0; j < 4; ++j) std::memcpy(q + at + place_256(i / 4 + j), quads + 4 * j, 4);
            sums[(at + i) / 16] = static_cast<int16_t>(sum(whole));
        }
        d[b] = scale.d;
    }
}

/// To the nearest whole number, as round_to_int8 rounds: adding and taking off 1.5 * 2^23 leaves no bits
/// behind the point.
inline V16 nearest(V16 x) {
    const V16 large = fill16(12582912.0f);
    return (x + large) - large;
}

void remainder(ActFormat format, const float* x, int n_in, float* out) {
    const int block = format == ActFormat::Q8_32 ? 32 : 256;
    for (int at = 0; at < n_in; at += block) {
        const auto part = [&](int i) { return load16(x + at + i, n_in - at < i ? 0 : n_in - at - i); };
        I16 most = magnitude_bits(part(0));
        for (int i = 16; i < block; i += 16) most = max(most, magnitude_bits(part(i)));
        const BlockScale scale = block_scale(max_lane(most));
        for (int i = 0; i < block; i += 16)
            store16(out + at + i, fma(nearest(part(i) * fill16(scale.inverse)), fill16(-scale.d), part(i)));
    }
}

void quantize(ActFormat format, const float* x, int n_in, void* out) {
    auto* bytes = static_cast<uint8_t*>(out);
    switch (format) {
        case ActFormat::Q8_32:
            return quantize_32(x, n_in, bytes);
        case ActFormat::Q8_256:
            return quantize_256(x, n_in, bytes);
        case ActFormat::F32:
            break;
    }
    auto* row = static_cast<float*>(out);
    for (int i = 0; i < n_in; i += 16)
        store16(row + i, load16(x + i, n_in - i));  // rows are whole steps of 64 bytes
}

}  // namespace
}  // namespace strata::cpu
