#include <cmath>
#include <limits>

#include "check.h"
#include "kernels_random.h"

using namespace strata;
using namespace strata::test;
using cpu::Kernels;

namespace {
constexpr int SIZES[] = {1, 2, 15, 16, 17, 64, 100};
constexpr float INF = std::numeric_limits<float>::infinity();
double silu(double x) { return x / (1 + std::exp(-x)); }
}  // namespace

TEST(norms_follow_their_formulas_and_work_in_place) {
    for (const Kernels* k : cpu::kernels_here())
        for (int n : SIZES) {
            const auto x = random_floats(n, 1, 3), w = random_floats(n, 2);
            double squares = 0;
            for (float v : x) squares += static_cast<double>(v) * v;
            std::vector<float> y(n), in_place = x, plain(n), unit(n);
            k->rms_norm(x.data(), w.data(), n, 1e-5f, y.data());
            k->rms_norm(in_place.data(), w.data(), n, 1e-5f, in_place.data());
            k->rms_norm(x.data(), nullptr, n, 1e-5f, plain.data());
            k->l2_norm(x.data(), n, 1e-5f, 0.5f, unit.data());
            CHECK(y == in_place);
            for (int i = 0; i < n; ++i) {
                CHECK_NEAR(y[i], x[i] / std::sqrt(squares / n + 1e-5) * w[i], 1e-5);
                CHECK_NEAR(plain[i], x[i] / std::sqrt(squares / n + 1e-5), 1e-5);
                CHECK_NEAR(unit[i], x[i] / std::sqrt(squares + 1e-5) * 0.5, 1e-5);
            }
        }
}

TEST(gates_follow_their_formulas_for_any_size) {
    for (const Kernels* k : cpu::kernels_here()) {
        for (int n : SIZES) {
            const auto gate = random_floats(n, 3, 4), x = random_floats(n, 4);
            std::vector<float> swish(n + 1, 7), sigmoid(n + 1, 7), sum = x;
            k->silu_mul(gate.data(), x.data(), swish.data(), n);
            k->sigmoid_mul(gate.data(), x.data(), sigmoid.data(), n);
            k->add(sum.data(), gate.data(), n);
            CHECK(swish[n] == 7 && sigmoid[n] == 7);
            for (int i = 0; i < n; ++i) {
                CHECK_NEAR(swish[i], silu(gate[i]) * x[i], 2e-6 * (1 + std::abs(silu(gate[i]) * x[i])));
                CHECK_NEAR(sigmoid[i], x[i] / (1 + std::exp(-static_cast<double>(gate[i]))), 2e-6);
                CHECK_EQ(sum[i], x[i] + gate[i]);
            }
        }
        k->add(nullptr, nullptr, 0);
        const float gate[] = {-1e30f, -200, 200, 1e30f}, ones[] = {1, 1, 1, 1};
        float out[4];
        k->silu_mul(gate, ones, out, 4);
        CHECK(out[0] == 0 && out[1] == 0 && out[2] == 200 && out[3] == 1e30f);
    }
}

TEST(rope_rotates_pairs_of_both_kinds) {
    for (const Kernels* k : cpu::kernels_here())
        for (int n : {2, 6, 32, 50})
            for (bool adjacent : {false, true}) {
                const auto x = random_floats(n + 1, 5), angle = random_floats(n / 2, 6);
                std::vector<float> cos, sin, y = x;
                for (float a : angle) cos.push_back(std::cos(a)), sin.push_back(std::sin(a));
                k->rope(y.data(), n, adjacent, cos.data(), sin.data());
                CHECK_EQ(y[n], x[n]);
                for (int i = 0; i < n / 2; ++i) {
                    const int a = adjacent ? 2 * i : i, b = adjacent ? 2 * i + 1 : i + n / 2;
                    CHECK_NEAR(y[a], x[a] * std::cos(angle[i]) - x[b] * std::sin(angle[i]), 1e-5);
                    CHECK_NEAR(y[b], x[a] * std::sin(angle[i]) + x[b] * std::cos(angle[i]), 1e-5);
                }
            }
}

TEST(convolution_covers_its_channels_alone) {
    const int channels = 53, taps = 4;
    const auto rows = random_floats(channels * taps, 7), w = random_floats(channels * taps, 8);
    const float* u[taps];
    for (int j = 0; j < taps; ++j) u[j] = rows.data() + j * channels;
    for (const Kernels* k : cpu::kernels_here())
        for (int begin : {0, 5, 53})
            for (int end : {begin, 37, 53}) {
                std::vector<float> out(channels, 7);
                k->conv_silu(u, w.data(), taps, channels, begin, end, out.data());
                for (int c = 0; c < channels; ++c) {
                    double total = 0;
                    for (int j = 0; j < taps; ++j)
                        total += static_cast<double>(w[j * channels + c]) * u[j][c];
                    CHECK_NEAR(out[c], c >= begin && c < end ? silu(total) : 7, 1e-5);
                }
            }
}

TEST(argmax_takes_the_lowest_index_and_never_nan) {
    for (const Kernels* k : cpu::kernels_here()) {
        for (int n : SIZES)
            for (int at = 0; at < n; ++at) {
                std::vector<float> x(n, -2);
                for (int i = at; i < n; i += 3) x[i] = -1;
                CHECK_EQ(k->argmax(x.data(), n), at);
                std::vector<float> broken(n, NAN);
                CHECK_EQ(k->argmax(broken.data(), n), 0);
                broken[at] = -INF;
                CHECK_EQ(k->argmax(broken.data(), n), at);
            }
        const float zeros[] = {NAN, -0.0f, 0.0f};
        CHECK_EQ(k->argmax(zeros, 3), 1);
    }
}

TEST(exponentials_and_their_sum) {
    for (const Kernels* k : cpu::kernels_here()) {
        for (int n : SIZES) {
            const auto x = random_floats(n, 9, 20);
            std::vector<float> y(n);
            double total = 0;
            const float sum = k->exp_sum(x.data(), n, 10, 0.7f, y.data());
            for (int i = 0; i < n; ++i) {
                const double e = std::exp(static_cast<double>(0.7f * (x[i] - 10)));
                CHECK_NEAR(y[i] / e, 1, 4e-7);
                total += e;
            }
            CHECK_NEAR(sum / total, 1, 1e-6);
            CHECK_EQ(k->exp_sum(x.data(), n, 10, 0.7f, nullptr), sum);
        }
        const float ends[] = {-INF, -87.5f, 0, 88.5f, INF, NAN};
        float y[6];
        k->exp_sum(ends, 6, 0, 1, y);
        CHECK(y[0] == 0 && y[1] == 0 && y[2] == 1 && y[3] == INF && y[4] == INF && std::isnan(y[5]));
        CHECK_EQ(k->exp_sum(ends, 0, 0, 1, nullptr), 0.0f);
    }
}

TEST(float16_rounds_to_nearest_even) {
    const float x[] = {
        0,        -0.0f,    1,          -2.5f,      65504,    65519.99f,    65520,        1e6f,         -INF,
        0x1p-24f, 0x1p-25f, 0x1.8p-24f, 0x1.8p-25f, 0x1p-14f, 1 + 0x1p-11f, 1 + 0x3p-11f, 0x1.ffcp-15f, NAN};
    const uint16_t expected[] = {0, 0x8000, 0x3c00, 0xc100, 0x7bff, 0x7bff, 0x7c00, 0x7c00, 0xfc00,
                                 1, 0,      2,      1,      0x0400, 0x3c00, 0x3c02, 0x0400, 0x7e00};
    // 0x1.ffcp-15 lies between 0x3ff and 0x400 subnormal steps, on the tie; even wins.
    for (const Kernels* k : cpu::kernels_here()) {
        uint16_t y[18];
        k->store_f16(x, 18, y);
        for (int i = 0; i < 18; ++i) CHECK_EQ(y[i], expected[i]);
        for (uint32_t h = 0; h < 0x10000; ++h) {  // every float16 comes back
            const float value = cpu::blocks::from_f16(static_cast<uint16_t>(h));
            uint16_t back;
            k->store_f16(&value, 1, &back);
            if (std::isnan(value))
                CHECK((back & 0x7e00) == 0x7e00);
            else
                CHECK_EQ(back, h);
        }
    }
}
