#include <cmath>
#include <cstdio>
#include <functional>

#include "base/error.h"
#include "check.h"
#include "kernels_random.h"

using namespace strata;
using namespace strata::test;
using cpu::Kernels;

namespace {

using Bytes = std::vector<uint8_t>;
void append(Bytes& to, const void* data, size_t bytes) {
    const auto* p = static_cast<const uint8_t*>(data);
    to.insert(to.end(), p, p + bytes);
}
void append(Bytes& to, const std::vector<float>& floats) {
    append(to, floats.data(), floats.size() * sizeof(float));
}

/// Everything that a kernel table computes from some inputs, as bytes.
Bytes everything(const Kernels& k) {
    Bytes out;
    for (Type type : ALL_TYPES) {
        const int block = type_info(type).block_size;
        for (int n : {1, 3, 16, 17, 18, 33}) {
            const int n_in = block * n;
            const RandomWeights w(type, n_in, 6, 21);
            for (int rows : {1, 2, 4, 7, 8, 13}) {
                const RandomRows x(k, type, n_in, rows, 22);
                append(out, x.data.data(), x.data.size());
                std::vector<float> y(static_cast<size_t>(rows) * 6);
                k.matmul(w.weight, x.row(0), x.stride, rows, 0, 6, y.data(), 6);
                append(out, y);
            }
            std::vector<float> values(static_cast<size_t>(n_in) * 6);
            k.dequantize(type, w.weight.data, n_in * 6, values.data());
            append(out, values);
        }
    }
    for (int n : {1, 7, 16, 31, 64, 67, 250}) {
        const auto x = random_floats(n, 23, 30), w = random_floats(n, 24), cos = random_floats(n, 25),
                   sin = random_floats(n, 26);
        std::vector<float> y(n);
        k.rms_norm(x.data(), w.data(), n, 1e-6f, y.data()), append(out, y);
        k.l2_norm(x.data(), n, 1e-6f, 0.25f, y.data()), append(out, y);
        k.silu_mul(x.data(), w.data(), y.data(), n), append(out, y);
        k.sigmoid_mul(x.data(), w.data(), y.data(), n), append(out, y);
        y = x, k.add(y.data(), w.data(), n), append(out, y);
        for (bool adjacent : {false, true})
            y = x, k.rope(y.data(), n / 2 * 2, adjacent, cos.data(), sin.data()), append(out, y);
        const float* taps[] = {x.data(), w.data(), cos.data(), sin.data()};
        const auto kernel = random_floats(4 * n, 27);
        k.conv_silu(taps, kernel.data(), 4, n, n / 3, n, y.data()), append(out, y);
        const float total = k.exp_sum(x.data(), n, 20, 1.5f, y.data());
        append(out, &total, sizeof total), append(out, y);
        std::vector<uint16_t> halves(n);
        k.store_f16(x.data(), n, halves.data()), append(out, halves.data(), halves.size() * 2);
        const int best = k.argmax(x.data(), n);
        append(out, &best, sizeof best);
    }
    for (int dim : {7, 64, 80})
        for (auto kv_type : {cpu::KvType::F32, cpu::KvType::F16}) {
            const int cells = 150, queries = 5, n_visible[] = {1, 64, 65, 149, 150};
            const auto q = random_floats(queries * dim, 28), kv = random_floats(2 * cells * dim, 29);
            std::vector<uint16_t> halves(kv.size());
            k.store_f16(kv.data(), static_cast<int>(kv.size()), halves.data());
            std::vector<float> y(queries * dim), scratch(cpu::attention_scratch(queries, dim, dim));
            cpu::Attention a;
            a.q = q.data(), a.q_stride = dim, a.n_visible = n_visible, a.n_queries = queries,
            a.kv_type = kv_type;
            if (kv_type == cpu::KvType::F32)
                a.k = kv.data(), a.v = kv.data() + cells * dim;
            else
                a.k = halves.data(), a.v = halves.data() + cells * dim;
            a.head_dim = a.v_dim = dim, a.scale = 0.3f, a.out = y.data(), a.out_stride = dim,
            a.scratch = scratch.data();
            k.attention(a), append(out, y);

            const auto s = random_floats(dim * (dim + 3), 30), key = random_floats(dim, 31),
                       v = random_floats(dim + 3, 32);
            std::vector<float> s_out(s.size()), o(dim + 3);
            k.delta_step(
                {s.data(), s_out.data(), q.data(), key.data(), v.data(), 0.9f, 0.4f, o.data(), dim, dim + 3});
            append(out, s_out), append(out, o);
        }
    return out;
}

}  // namespace

TEST(instruction_sets_of_the_same_numerics_give_equal_bits) {
    const auto here = cpu::kernels_here();
    int compared = 0;
    for (const Kernels* a : here)
        for (const Kernels* b : here)
            if (a < b && std::string(a->numerics) == b->numerics) {
                CHECK(everything(*a) == everything(*b));
                ++compared;
            }
    if (!compared)
        std::printf("SKIPPED instruction_sets_of_the_same_numerics_give_equal_bits: no two of them here\n");
}

TEST(instruction_sets_are_chosen_by_name) {
    for (const Kernels* k : cpu::kernels_here()) CHECK(&cpu::kernels(k->name) == k);
    CHECK(&cpu::kernels() == cpu::kernels_here().front());
    CHECK(&cpu::kernels("") == cpu::kernels_here().front());
    CHECK_EQ(std::string(cpu::kernels_here().back()->name), "portable");
    CHECK_THROWS(cpu::kernels("mmx"), "[kernels] unknown instruction set \"mmx\", expected one of");
}

TEST(instruction_sets_agree_within_rounding) {
    const Kernels& portable = cpu::kernels("portable");
    for (const Kernels* k : cpu::kernels_here())
        for (Type type : ALL_TYPES) {
            const int n_in = type_info(type).block_size * 5;
            const RandomWeights w(type, n_in, 4, 33);
            const RandomRows x(*k, type, n_in, 3, 34), same(portable, type, n_in, 3, 34);
            CHECK(x.data == same.data);  // activations are rounded alike everywhere
            float y[12], reference[12];
            k->matmul(w.weight, x.row(0), x.stride, 3, 0, 4, y, 4);
            portable.matmul(w.weight, same.row(0), same.stride, 3, 0, 4, reference, 4);
            for (int i = 0; i < 12; ++i) CHECK_NEAR(y[i], reference[i], 1e-4);
        }
}
