#include "kernels/cpu/bandwidth.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/aligned.h"
#include "base/error.h"

namespace strata::cpu {

double read_bandwidth(const Kernels& kernels, size_t bytes, int threads, double seconds) {
    if (threads < 1 || bytes / 64 < static_cast<size_t>(threads) || !(seconds > 0))
        throw Error("[bandwidth] expected at least one thread, 64 bytes for each and a time above 0 s, got " +
                    std::to_string(threads) + " threads, " + std::to_string(bytes) + " bytes, " +
                    std::to_string(seconds) + " s");
    using Clock = std::chrono::steady_clock;
    const size_t part = bytes / 64 / static_cast<size_t>(threads) * 64;
    Buffer<uint8_t> memory(part * static_cast<size_t>(threads));
    std::memset(memory.data(), 1, memory.size());  // real pages, not the one page of zeros

    std::atomic<int> waiting{threads};
    std::atomic<uint64_t> total{0};  // keeps the sums alive
    std::vector<double> rates(static_cast<size_t>(threads));
    const auto read = [&](int t) {
        for (--waiting; waiting > 0;) std::this_thread::yield();
        const auto start = Clock::now();
        double elapsed = 0;
        size_t passes = 0;
        do {
            total += kernels.read_all(memory.data() + part * static_cast<size_t>(t), part);
            ++passes;
            elapsed = std::chrono::duration<double>(Clock::now() - start).count();
        } while (elapsed < seconds);
        rates[static_cast<size_t>(t)] = static_cast<double>(part * passes) / elapsed;
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(read, t);
    read(0);
    for (std::thread& other : others) other.join();
    double sum = 0;
    for (double rate : rates) sum += rate;
    return sum;
}

}  // namespace strata::cpu
