#pragma once

#include <algorithm>
#include <cstring>
#include <random>

#include "driver.h"

namespace strata::fuzz {

/// Changes an input a little, as coverage-guided fuzzers do: bits, bytes, numbers at any offset, blocks
/// moved, copied, cut, and pieces of another input.
class Mutator {
  public:
    explicit Mutator(uint64_t seed) : random_(seed) {}

    size_t below(size_t n) { return n ? random_() % n : 0; }

    void change(Input& input, const Input& other) {
        const size_t steps = size_t{1} << below(4);
        for (size_t i = 0; i < steps; ++i) step(input, other);
        if (input.size() > MAX_BYTES) input.resize(MAX_BYTES);
    }

  private:
    static constexpr size_t MAX_BYTES = 1 << 13;

    template <typename T>
    void put(Input& input, T value) {
        if (input.size() < sizeof(T)) return;
        std::memcpy(input.data() + below(input.size() - sizeof(T) + 1), &value, sizeof(T));
    }

    uint64_t number(size_t size) {
        constexpr uint64_t EDGES[] = {0,          1,          2,         3,          4,         8,
                                      0x7F,       0xFF,       0x7FFF,    0xFFFF,     1u << 20,  0x7FFFFFFF,
                                      0xFFFFFFFF, 1ull << 32, INT64_MAX, UINT64_MAX, 1ull << 63};
        switch (below(3)) {
            case 0:
                return EDGES[below(std::size(EDGES))] + below(3) - 1;
            case 1:
                return size + below(17) - 8;
            default:
                return below(64);
        }
    }

    void step(Input& input, const Input& other) {
        if (input.empty()) {
            input = other;
            return;
        }
        const size_t at = below(input.size());
        const size_t n = std::min(size_t{1} << below(7), input.size() - at);
        const auto begin = input.begin() + static_cast<long>(at);
        switch (below(11)) {
            case 0:
                input[at] ^= static_cast<uint8_t>(1 << below(8));
                break;
            case 1:
                input[at] = static_cast<uint8_t>(random_());
                break;
            case 2:
                put(input, number(input.size()));
                break;
            case 3:
                put(input, static_cast<uint32_t>(number(input.size())));
                break;
            case 4:
                put(input, static_cast<uint16_t>(number(input.size())));
                break;
            case 5:
                input[at] = static_cast<uint8_t>(input[at] + below(9) - 4);
                break;
            case 6:
                input.erase(begin, begin + static_cast<long>(n));
                break;
            case 7: {  // a block once more
                const Input block(begin, begin + static_cast<long>(n));
                input.insert(input.begin() + static_cast<long>(below(input.size())), block.begin(),
                             block.end());
                break;
            }
            case 8: {  // a block over another
                const size_t to = below(input.size());
                std::memmove(input.data() + to, input.data() + at, std::min(n, input.size() - to));
                break;
            }
            case 9:
                if (!other.empty()) {
                    const size_t from = below(other.size());
                    const auto source = other.begin() + static_cast<long>(from);
                    const auto count = static_cast<long>(std::min(n, other.size() - from));
                    input.insert(begin, source, source + count);
                }
                break;
            default:
                input.resize(at);
        }
    }

    std::mt19937_64 random_;
};

}  // namespace strata::fuzz
