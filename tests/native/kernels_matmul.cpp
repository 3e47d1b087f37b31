#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "check.h"
#include "kernels_random.h"

using namespace strata;
using namespace strata::test;
using cpu::Kernels;

namespace {

struct Shape {
    int n_in, n_out;
};
/// Blocks odd and even in number, steps whole and not, one that needs a tail of single floats.
std::vector<Shape> shapes(Type type) {
    const int block = type_info(type).block_size;
    if (block == 1) return {{1, 3}, {15, 1}, {16, 5}, {67, 9}, {576, 4}};
    if (block == 32) return {{32, 3}, {64, 1}, {96, 5}, {512, 7}, {544, 4}, {608, 9}};
    return {{256, 3}, {512, 5}, {768, 9}};
}

std::vector<float> product(const Kernels& k, const cpu::Weight& w, const RandomRows& x, int first, int rows) {
    std::vector<float> y(static_cast<size_t>(rows) * w.n_out, NAN);
    k.matmul(w, x.row(first), x.stride, rows, 0, w.n_out, y.data(), w.n_out);
    return y;
}

bool same_bits(const float* a, const float* b, size_t n) { return std::memcmp(a, b, n * sizeof(float)) == 0; }

}  // namespace

TEST(matmul_rows_do_not_depend_on_their_neighbours) {
    for (const Kernels* k : cpu::kernels_here())
        for (Type type : ALL_TYPES)
            for (const Shape& shape : shapes(type)) {
                const RandomWeights w(type, shape.n_in, shape.n_out, 1);
                const int most = shape.n_in > 500 && shape.n_out > 4 ? 512 : 17;
                const RandomRows x(*k, type, shape.n_in, most, 2);
                std::vector<float> alone;
                for (int r = 0; r < most; ++r) {
                    const auto y = product(*k, w.weight, x, r, 1);
                    alone.insert(alone.end(), y.begin(), y.end());
                }
                for (int rows : {2, 3, 4, 5, 6, 7, 8, 9, 17, most})
                    for (int first : {0, most - rows}) {
                        const auto y = product(*k, w.weight, x, first, rows);
                        CHECK(same_bits(y.data(), alone.data() + static_cast<size_t>(first) * shape.n_out,
                                        y.size()));
                    }
            }
}

TEST(matmul_outputs_do_not_depend_on_the_split_of_the_range) {
    for (const Kernels* k : cpu::kernels_here())
        for (Type type : ALL_TYPES) {
            const Shape shape = shapes(type).back();
            const RandomWeights w(type, shape.n_in, shape.n_out, 3);
            for (int rows : {1, 4, 11}) {
                const RandomRows x(*k, type, shape.n_in, rows, 4);
                const auto whole = product(*k, w.weight, x, 0, rows);
                for (int split = 0; split <= shape.n_out; ++split) {
                    std::vector<float> y(whole.size(), NAN);
                    k->matmul(w.weight, x.row(0), x.stride, rows, 0, split, y.data(), shape.n_out);
                    k->matmul(w.weight, x.row(0), x.stride, rows, split, shape.n_out, y.data(), shape.n_out);
                    CHECK(same_bits(y.data(), whole.data(), y.size()));
                }
            }
        }
}

TEST(matmul_does_not_depend_on_the_weights_alignment) {
    for (const Kernels* k : cpu::kernels_here())
        for (Type type : ALL_TYPES) {
            const Shape shape = shapes(type).back();
            const RandomRows x(*k, type, shape.n_in, 3, 6);
            const RandomWeights aligned(type, shape.n_in, shape.n_out, 5),
                odd(type, shape.n_in, shape.n_out, 5, 3);
            const auto a = product(*k, aligned.weight, x, 0, 3), b = product(*k, odd.weight, x, 0, 3);
            CHECK(same_bits(a.data(), b.data(), a.size()));
        }
}

TEST(matmul_is_the_product_of_the_dequantized_weights_and_activations) {
    for (const Kernels* k : cpu::kernels_here())
        for (Type type : ALL_TYPES)
            for (const Shape& shape : shapes(type)) {
                const RandomWeights w(type, shape.n_in, shape.n_out, 7);
                std::vector<float> values(static_cast<size_t>(shape.n_in) * shape.n_out);
                k->dequantize(type, w.weight.data, static_cast<int64_t>(values.size()), values.data());
                const RandomRows x(*k, type, shape.n_in, 2, 8);
                const auto y = product(*k, w.weight, x, 0, 2);
                for (int r = 0; r < 2; ++r)
                    for (int o = 0; o < shape.n_out; ++o) {
                        double exact = 0, squares = 0, largest = 0;
                        for (int i = 0; i < shape.n_in; ++i) {
                            const double value = values[static_cast<size_t>(o) * shape.n_in + i];
                            exact += value * x.floats[static_cast<size_t>(r) * shape.n_in + i];
                            squares += value * value;
                            largest = std::max<double>(
                                largest, std::abs(x.floats[static_cast<size_t>(r) * shape.n_in + i]));
                        }
                        // Rounding x to int8 errs by at most half a step, evenly: six deviations of the sum
                        // of that.
                        const double step = type_info(type).block_size == 1 ? 1e-6 : largest / 127;
                        CHECK_NEAR(y[static_cast<size_t>(r) * shape.n_out + o], exact,
                                   6 * std::sqrt(squares / 12) * step + 1e-6);
                    }
            }
}

TEST(matmul_integer_sums_never_saturate) {
    for (const Kernels* k : cpu::kernels_here())
        for (int8_t extreme : {int8_t{-128}, int8_t{127}}) {
            RandomWeights w(Type::Q8_0, 64, 1, 9);
            uint8_t* block = w.bytes.data();
            for (int b = 0; b < 2; ++b, block += 34) {
                const uint16_t one = cpu::blocks::to_f16(1.0f);
                std::memcpy(block, &one, 2);
                std::memset(block + 2, static_cast<uint8_t>(extreme), 32);
            }
            RandomRows x(*k, Type::Q8_0, 64, 1, 10);
            for (float value : {1.0f, -1.0f}) {
                const std::vector<float> ends(64, value);
                k->quantize(cpu::ActFormat::Q8_32, ends.data(), 64, x.data.data());
                CHECK_NEAR(product(*k, w.weight, x, 0, 1)[0], 64.0 * extreme * value, 1e-3);
            }
        }
}

TEST(matmul_integer_sums_of_blocks_of_256_never_saturate) {
    for (const Kernels* k : cpu::kernels_here())
        for (Type type : {Type::Q2_K, Type::Q3_K, Type::Q4_K, Type::Q5_K, Type::Q6_K, Type::IQ4_NL,
                          Type::IQ4_XS, Type::IQ3_S, Type::IQ3_XXS})
            for (const uint8_t fill :
                 {0x00, 0x7f, 0x80, 0xf0, 0xff}) {  // the largest quants and scales are among these
                RandomWeights w(type, 256, 1, 9);
                std::fill(w.bytes.begin(), w.bytes.end(), fill);
                const uint16_t one = cpu::blocks::to_f16(1.0f);
                for (const int at : scale_offsets(type))
                    for (size_t block = 0; block < w.bytes.size(); block += type_info(type).block_bytes)
                        std::memcpy(w.bytes.data() + block + at, &one, 2);
                std::vector<float> values(256), x(256);
                k->dequantize(type, w.weight.data, 256, values.data());
                double sum = 0;
                for (int i = 0; i < 256; ++i) {
                    x[i] = values[i] < 0 ? -1.0f : 1.0f;  // all products of one sign
                    sum += std::abs(values[i]);
                }
                RandomRows rows(*k, type, 256, 1, 10);
                k->quantize(cpu::act_format(type), x.data(), 256, rows.data.data());
                CHECK_NEAR(product(*k, w.weight, rows, 0, 1)[0], sum, 1e-6 * sum + 1e-3);
            }
}

TEST(matmul_of_no_rows_or_no_outputs_writes_nothing) {
    for (const Kernels* k : cpu::kernels_here())
        for (Type type : ALL_TYPES) {
            const RandomWeights w(type, 256, 3, 11);
            const RandomRows x(*k, type, 256, 1, 12);
            float y[3] = {7, 7, 7};
            k->matmul(w.weight, x.row(0), x.stride, 0, 0, 3, y, 3);
            k->matmul(w.weight, x.row(0), x.stride, 1, 2, 2, y, 3);
            CHECK(y[0] == 7 && y[1] == 7 && y[2] == 7);
        }
}

TEST(matmul_writes_its_rows_at_their_stride_and_nothing_between) {
    for (const Kernels* k : cpu::kernels_here()) {
        const RandomWeights w(Type::Q4_K, 256, 3, 13);
        const RandomRows x(*k, Type::Q4_K, 256, 9, 14);
        std::vector<float> wide(9 * 5, 7);
        k->matmul(w.weight, x.row(0), x.stride, 9, 1, 3, wide.data(), 5);
        const auto y = product(*k, w.weight, x, 0, 9);
        for (int r = 0; r < 9; ++r) {
            CHECK(wide[5 * r] == 7 && wide[5 * r + 3] == 7 && wide[5 * r + 4] == 7);
            CHECK(same_bits(&wide[5 * r + 1], &y[3 * r + 1], 2));
        }
    }
}

TEST(matmul_of_not_a_number_is_not_a_number) {
    for (const Kernels* k : cpu::kernels_here())
        for (Type type : ALL_TYPES) {
            const RandomWeights w(type, 256, 1, 15);
            RandomRows x(*k, type, 256, 1, 16);
            x.floats[77] = NAN;
            k->quantize(cpu::act_format(type), x.floats.data(), 256, x.data.data());
            CHECK(std::isnan(product(*k, w.weight, x, 0, 1)[0]));
        }
}
