#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "kernels/types.h"
#include "model/tensor.h"

namespace strata {

/// Copies of tensors whose types have no kernels, in a type that holds every value exactly. Each is made when
/// it is first asked for, by all cores, and kept as long as this object.
class DequantisedCopies {
  public:
    /// The tensor's values in `type` (F32, F16, BF16), in the tensor's order. `scales` multiply equal shares
    /// of them (one: all of them); with none they are left as they are.
    const uint8_t* of(const Tensor& tensor, const TypeInfo& type, const std::vector<float>& scales);
    bool has(const std::string& tensor) const;
    /// One line on what was copied and what it costs; "" for nothing. `file`: the file's name.
    std::string notice(const std::string& file) const;

  private:
    struct Copy {
        Type from;
        uint64_t stored_bytes;
        Buffer<uint8_t> data;
    };
    mutable std::mutex mutex_;  // engines on one file may be made at once
    std::map<std::string, Copy> copies_;
};

}  // namespace strata
