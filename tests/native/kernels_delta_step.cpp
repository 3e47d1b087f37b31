#include <cmath>

#include "check.h"
#include "kernels_random.h"

using namespace strata;
using namespace strata::test;
using cpu::Kernels;

TEST(delta_step_follows_the_rule_in_place_or_not) {
    for (const Kernels* kernels : cpu::kernels_here())
        for (int k_dim : {1, 5, 64, 128})
            for (int v_dim : {1, 16, 37, 64, 128}) {
                const size_t size = static_cast<size_t>(k_dim) * v_dim;
                const auto s = random_floats(size, 1), q = random_floats(k_dim, 2),
                           k = random_floats(k_dim, 3, 0.1f);
                const auto v = random_floats(v_dim, 4);
                const float decay = 0.8f, beta = 0.6f;
                std::vector<float> s_out(size), o(v_dim), in_place = s, silent(size);
                kernels->delta_step({s.data(), s_out.data(), q.data(), k.data(), v.data(), decay, beta,
                                     o.data(), k_dim, v_dim});
                kernels->delta_step({in_place.data(), in_place.data(), q.data(), k.data(), v.data(), decay,
                                     beta, o.data(), k_dim, v_dim});
                kernels->delta_step({s.data(), silent.data(), nullptr, k.data(), v.data(), decay, beta,
                                     nullptr, k_dim, v_dim});
                CHECK(s_out == in_place);
                CHECK(s_out == silent);
                for (int j = 0; j < v_dim; ++j) {
                    double along = 0, out = 0;
                    for (int i = 0; i < k_dim; ++i)
                        along += static_cast<double>(decay) * s[i * v_dim + j] * k[i];
                    const double delta = beta * (v[j] - along);
                    for (int i = 0; i < k_dim; ++i) {
                        const double next = static_cast<double>(decay) * s[i * v_dim + j] + k[i] * delta;
                        CHECK_NEAR(s_out[i * v_dim + j], next, 1e-5);
                        out += next * q[i];
                    }
                    CHECK_NEAR(o[j], out, 1e-4);
                }
            }
}
