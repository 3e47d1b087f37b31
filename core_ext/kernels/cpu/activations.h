#pragma once

#include <cstddef>
#include <cstdint>

/// Rows of activations as quantize writes them and matmul reads them; each part starts on 64 bytes.
///   Q8_32   d[blocks]  sums[blocks]          q[32 * blocks]   value i = d * q_i; sums: d * (sum of the block's q), float32
///   Q8_256  d[blocks]  sums[16 * blocks]     q[256 * blocks]  sums: of 16 neighbouring q each, int16
/// d = max|x| / 127, float32; q = x * (127 / max|x|) to nearest, in -127 .. 127. Blocks of Q8_32 are counted up to a
/// multiple of 16, those past the row are zero: a product takes 16 scales and two blocks at a time.
namespace strata::cpu {

constexpr size_t align64(size_t bytes) { return (bytes + 63) & ~size_t{63}; }

struct Q8_32Layout {
    int blocks;
    size_t sums, q, bytes;  // offsets and size, in bytes
    explicit constexpr Q8_32Layout(int n_in)
        : blocks((n_in + 511) / 512 * 16),
          sums(sizeof(float) * static_cast<size_t>(blocks)),
          q(2 * sums),
          bytes(q + 32 * static_cast<size_t>(blocks)) {}
};

struct Q8_256Layout {
    int blocks;
    size_t sums, q, bytes;
    explicit constexpr Q8_256Layout(int n_in)
        : blocks((n_in + 255) / 256),
          sums(align64(sizeof(float) * static_cast<size_t>(blocks))),
          q(sums + align64(16 * sizeof(int16_t) * static_cast<size_t>(blocks))),
          bytes(q + 256 * static_cast<size_t>(blocks)) {}
};

}  // namespace strata::cpu
