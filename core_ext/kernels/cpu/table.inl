/// What an instruction set's file includes after its vectors: all kernels, and their table.
// clang-format off: the kernels, in the order in which they build on each other
#include "kernels/cpu/activations.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/codebooks.h"
#include "kernels/cpu/dequantize.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/elementwise.inl"
#include "kernels/cpu/quantize.inl"
#include "kernels/cpu/product.inl"
#include "kernels/cpu/product_floats.inl"
#include "kernels/cpu/product_32.inl"
#include "kernels/cpu/product_256.inl"
#include "kernels/cpu/matmul.inl"
#include "kernels/cpu/attention.inl"
#include "kernels/cpu/delta_step.inl"
// clang-format on

namespace strata::cpu {
namespace {

/// Every 64-bit word, added up, to measure how fast memory is read. bytes: a multiple of 64.
uint64_t read_all(const void* data, size_t bytes) {
    const auto* p = static_cast<const uint8_t*>(data);
    uint64_t total = 0;
    for (size_t at = 0; at < bytes; at += 64) {
        prefetch(p + at + AHEAD_BYTES);
        for (size_t i = 0; i < 64; i += 8) total += blocks::read<uint64_t>(p + at + i);
    }
    return total;
}

constexpr Kernels TABLE{
    .name = ISA_NAME,
    .numerics = ISA_NUMERICS,
    .dequantize = dequantize,
    .quantize = quantize,
    .remainder = remainder,
    .matmul = matmul,
    .rms_norm = rms_norm,
    .l2_norm = l2_norm,
    .add = add,
    .silu_mul = silu_mul,
    .sigmoid_mul = sigmoid_mul,
    .rope = rope,
    .conv_silu = conv_silu,
    .attention = attention,
    .delta_step = delta_step,
    .store_f16 = store_f16,
    .argmax = argmax,
    .exp_sum = exp_sum,
    .read_all = read_all,
};

}  // namespace
}  // namespace strata::cpu
