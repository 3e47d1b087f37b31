#pragma once

#include <stdexcept>
#include <string>

namespace strata {

/// What the user's input, file or machine made impossible. The text begins with the operation in brackets and
/// carries place and numbers: "[gguf] model.gguf: tensor blk.3.attn_q.weight at offset 81920 needs 4096
/// bytes, file has 1024 left".
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A state that no input can produce. Its text says BUG.
[[noreturn]] inline void bug(const std::string& what) { throw std::logic_error("BUG: " + what); }

}  // namespace strata
