#pragma once

#include <cstddef>
#include <cstdint>

/// Rows of activations as quantize writes them and matmul reads them, each part starting on 64 bytes; value i
/// = d * q_i.
///   Q8_32   d[blocks]  sums[blocks]       whole_sums[blocks]  q[32 * blocks]
///   Q8_256  d[blocks]  sums[16 * blocks]  q[256 * blocks]
/// d = max|x| / 127, float32; q = x * (127 / max|x|) to nearest, in -127 .. 127. Q8_32: whole_sums are a
/// block's sums of q, int32, and sums d times that, float32. Q8_256: sums are those of 16 neighbouring q
/// each, int16.
///
/// Four neighbouring values make a quad; quads are interleaved. Q8_32 goes by groups of 16 blocks, the last
/// one filled up with zeros: quad j of block b stands at 64 j + 4 b of its group. So one register holds quad
/// j of 16 blocks (or of 8), products add up without a shuffle, and lane b of the sum is block b. Q8_256
/// interleaves the quads of a block's eight groups of 32: quad j of group g stands at place_256(8 g + j), so
/// that registers of 32 bytes hold quads of the groups 0, 2, 4, 6 or 1, 3, 5, 7, quad j in the low half and j
/// + 4 in the high one.
namespace strata::cpu {
// Unnamed: every instruction set's file compiles these for itself, and the linker must not pick one of them
// for all.
namespace {

constexpr size_t align64(size_t bytes) { return (bytes + 63) & ~size_t{63}; }

struct Q8_32Layout {
    int blocks;
    size_t sums, whole_sums, q, bytes;  // offsets and size, in bytes
    explicit constexpr Q8_32Layout(int n_in)
        : blocks((n_in + 511) / 512 * 16),
          sums(sizeof(float) * static_cast<size_t>(blocks)),
          whole_sums(2 * sums),
          q(3 * sums),
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

/// Byte offset, within a block of Q8_256, of quad 0 .. 63.
constexpr int place_256(int quad) {
    const int group = quad / 8, j = quad % 8;
    return 32 * (group % 2 * 4 + j % 4) + 16 * (j / 4) + 4 * (group / 2);
}

}  // namespace
}  // namespace strata::cpu
