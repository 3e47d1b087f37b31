#include <cmath>

#include "check.h"
#include "kernels_random.h"

using namespace strata;
using namespace strata::test;
using cpu::Kernels;

namespace {

struct Queries {
    int head_dim, v_dim;
    cpu::KvType type;
    std::vector<int> n_visible;
};
std::vector<Queries> attention_cases() {
    std::vector<Queries> all;
    for (auto type : {cpu::KvType::F32, cpu::KvType::F16})
        for (int dim : {1, 17, 64, 128})
            for (const std::vector<int>& visible :
                 {std::vector<int>{1}, {64}, {65}, {3, 4, 5, 6}, {200, 1, 129, 128, 63, 7, 70, 71, 72}})
                all.push_back({dim, dim == 17 ? 40 : dim, type, visible});
    return all;
}

struct Inputs {
    std::vector<float> q, k, v;
    std::vector<uint16_t> k16, v16;
    Inputs(const Kernels& kernels, const Queries& c, int cells) {
        q = random_floats(c.n_visible.size() * c.head_dim, 1);
        k = random_floats(static_cast<size_t>(cells) * c.head_dim, 2);
        v = random_floats(static_cast<size_t>(cells) * c.v_dim, 3);
        k16.resize(k.size()), v16.resize(v.size());
        kernels.store_f16(k.data(), static_cast<int>(k.size()), k16.data());
        kernels.store_f16(v.data(), static_cast<int>(v.size()), v16.data());
        if (c.type == cpu::KvType::F16) {
            for (size_t i = 0; i < k.size(); ++i) k[i] = cpu::blocks::from_f16(k16[i]);
            for (size_t i = 0; i < v.size(); ++i) v[i] = cpu::blocks::from_f16(v16[i]);
        }
    }
};

std::vector<float> attend(const Kernels& kernels, const Queries& c, const Inputs& in, int first, int n) {
    std::vector<float> out(static_cast<size_t>(n) * c.v_dim, NAN);
    std::vector<float> scratch(cpu::attention_scratch(n, c.head_dim, c.v_dim));
    cpu::Attention a;
    a.q = in.q.data() + static_cast<size_t>(first) * c.head_dim, a.q_stride = c.head_dim;
    a.n_visible = c.n_visible.data() + first, a.n_queries = n;
    a.k = c.type == cpu::KvType::F32 ? static_cast<const void*>(in.k.data()) : in.k16.data();
    a.v = c.type == cpu::KvType::F32 ? static_cast<const void*>(in.v.data()) : in.v16.data();
    a.kv_type = c.type, a.head_dim = c.head_dim, a.v_dim = c.v_dim, a.scale = 0.4f;
    a.out = out.data(), a.out_stride = c.v_dim, a.scratch = scratch.data();
    kernels.attention(a);
    return out;
}

int most(const std::vector<int>& values) {
    int m = 0;
    for (int v : values) m = std::max(m, v);
    return m;
}

}  // namespace

TEST(attention_is_softmax_over_the_visible_cells) {
    for (const Kernels* kernels : cpu::kernels_here())
        for (const Queries& c : attention_cases()) {
            const Inputs in(*kernels, c, most(c.n_visible));
            const auto out = attend(*kernels, c, in, 0, static_cast<int>(c.n_visible.size()));
            for (size_t i = 0; i < c.n_visible.size(); ++i) {
                std::vector<double> p(c.n_visible[i]);
                double largest = -1e300, total = 0;
                for (size_t cell = 0; cell < p.size(); ++cell) {
                    for (int d = 0; d < c.head_dim; ++d)
                        p[cell] += 0.4 * in.q[i * c.head_dim + d] * in.k[cell * c.head_dim + d];
                    largest = std::max(largest, p[cell]);
                }
                for (double& weight : p) total += weight = std::exp(weight - largest);
                for (int d = 0; d < c.v_dim; ++d) {
                    double expected = 0;
                    for (size_t cell = 0; cell < p.size(); ++cell)
                        expected += p[cell] / total * in.v[cell * c.v_dim + d];
                    CHECK_NEAR(out[i * c.v_dim + d], expected, 1e-5);
                }
            }
        }
}

TEST(attention_of_a_query_does_not_depend_on_the_others) {
    for (const Kernels* kernels : cpu::kernels_here())
        for (const Queries& c : attention_cases()) {
            const Inputs in(*kernels, c, most(c.n_visible));
            const int n = static_cast<int>(c.n_visible.size());
            const auto together = attend(*kernels, c, in, 0, n);
            for (int i = 0; i < n; ++i) {
                const auto alone = attend(*kernels, c, in, i, 1);
                CHECK(std::memcmp(alone.data(), together.data() + static_cast<size_t>(i) * c.v_dim,
                                  alone.size() * sizeof(float)) == 0);
            }
        }
}

TEST(attention_never_takes_what_lies_past_a_querys_cells) {
    for (const Kernels* kernels : cpu::kernels_here())
        for (auto type : {cpu::KvType::F32, cpu::KvType::F16}) {
            const Queries c{32, 32, type, {70, 75}}, clean{32, 32, type, {70}};
            Inputs in(*kernels, c, 75);
            const auto before = attend(*kernels, clean, in, 0, 1);
            for (size_t i = 70 * 32; i < 75 * 32; ++i)
                in.k[i] = in.v[i] = NAN, in.k16[i] = in.v16[i] = 0x7e00;
            const auto after = attend(*kernels, c, in, 0, 2);
            CHECK(std::memcmp(before.data(), after.data(), before.size() * sizeof(float)) == 0);
            CHECK(std::isnan(after[32]));
        }
}
