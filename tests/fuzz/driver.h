#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace strata::fuzz {

using Input = std::vector<uint8_t>;

/// Something that reads untrusted bytes: it may refuse them with strata::Error, whatever else is a crash.
struct Target {
    std::string name;
    std::function<void(std::span<const uint8_t>)> read;
    std::vector<Input> corpus;
};

/// Runs the target `runs` times on mutations of its corpus, keeping what reaches new code, and prints what
/// was done. A crash, a hang of 10 s or too large an allocation ends the process, and the input is written to
/// crash-NAME.
void run(const Target& target, uint64_t runs, uint64_t seed);

}  // namespace strata::fuzz
