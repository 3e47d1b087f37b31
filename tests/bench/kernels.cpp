/// strata_bench [INSTRUCTION SET [TYPE]]: how fast one thread multiplies. For each weight type, for a matrix
/// larger than any cache and one of about 1 MiB: GB/s of weights for one row beside plain reading of as many
/// bytes, the time of 2, 4 and 8 rows as multiples of one row's, and 10^9 multiply-adds a second for 256
/// rows. Each arm takes its turn in every round; the medians are shown.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "../native/kernels_random.h"
#include "base/aligned.h"

using namespace strata;
using namespace strata::test;

namespace {

double seconds_of(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(const cpu::Kernels& k, Type type, size_t target_bytes, bool many_rows) {
    const TypeInfo& info = type_info(type);
    const int n_in = 1024, most = many_rows ? 256 : 8;
    const size_t row_bytes = static_cast<size_t>(n_in / info.block_size) * info.block_bytes;
    const int n_out = static_cast<int>(target_bytes / row_bytes);
    const size_t bytes = row_bytes * n_out;
    const RandomWeights pattern(type, n_in, 64, 1);
    Buffer<uint8_t> weights(bytes + 64);
    for (size_t at = 0; at < bytes; at += pattern.bytes.size())
        std::memcpy(weights.data() + at, pattern.bytes.data(), std::min(pattern.bytes.size(), bytes - at));
    const cpu::Weight w{type, weights.data(), n_in, n_out, row_bytes};
    const RandomRows x(k, type, n_in, most, 2);
    Buffer<float> y(static_cast<size_t>(most) * n_out);

    std::vector<int> arms = {0, 1, 2, 4, 8};  // 0: plain reading
    if (many_rows) arms.push_back(most);
    std::vector<std::vector<double>> times(arms.size());
    const int repeats = std::max<int>(1, static_cast<int>((size_t{8} << 20) / bytes));
    volatile uint64_t sink = 0;
    for (int round = 0; round < 9; ++round)
        for (size_t arm = 0; arm < arms.size(); ++arm)
            times[arm].push_back(seconds_of([&] {
                                     for (int i = 0; i < (arms[arm] > 8 ? 1 : repeats); ++i)
                                         if (arms[arm] == 0)
                                             sink = sink + k.read_all(weights.data(), bytes / 64 * 64);
                                         else
                                             k.matmul(w, x.row(0), x.stride, arms[arm], 0, n_out, y.data(),
                                                      n_out);
                                 }) /
                                 (arms[arm] > 8 ? 1 : repeats));
    std::vector<double> median;
    for (auto& t : times)
        std::nth_element(t.begin(), t.begin() + t.size() / 2, t.end()), median.push_back(t[t.size() / 2]);
    std::printf("%-7s %6.1f MiB  read %5.1f  one row %5.1f GB/s (%3.0f %%)  2: %.2f  4: %.2f  8: %.2f",
                info.name, static_cast<double>(bytes) / (1 << 20), bytes / median[0] / 1e9,
                bytes / median[1] / 1e9, 100 * median[0] / median[1], median[2] / median[1],
                median[3] / median[1], median[4] / median[1]);
    if (many_rows) std::printf("  %d rows %6.1f G/s", most, 1e-9 * n_in * n_out * most / median[5]);
    std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
    const cpu::Kernels& k = cpu::kernels(argc > 1 ? argv[1] : nullptr);
    std::printf("%s, one thread, rows of 1024\n", k.name);
    for (Type type : ALL_TYPES)
        if (argc < 3 || !std::strcmp(argv[2], type_info(type).name)) {
            measure(k, type, size_t{96} << 20, false);
            measure(k, type, size_t{1} << 20, true);
        }
}
