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

/// Copies of tensors that can't be multiplied where they lie: their type has no kernels, and they are kept in
/// one that holds every value exactly; or their rows are wanted in another order. They are asked for while a
/// model is loaded and made together, by all cores, once it is known that there is memory for all of them;
/// kept as long as this object.
class TensorCopies {
  public:
    /// Where the tensor's copy in `type` is, or will be. `scales` multiply equal shares of the values (one:
    /// all of them); with none they are left as they are. Row i of the copy is the tensor's rows[i]; none:
    /// all, in its order. Asking again for the same tensor gives the same copy.
    const uint8_t* of(const Tensor& tensor, const TypeInfo& type, std::vector<float> scales,
                      std::vector<int> rows);
    /// Of the copies that are still to be made: bytes of the tensors, and of the copies.
    struct Asked {
        uint64_t stored_bytes = 0, memory_bytes = 0;
    };
    Asked asked() const;
    /// Makes them. Throws std::bad_alloc.
    void make();
    /// They aren't wanted any more.
    void forget_asked();
    /// One line each on what was dequantised and on what was put in another order, and what it costs.
    /// `file`: the file's name.
    std::vector<std::string> notices(const std::string& file) const;

  private:
    struct Copy {
        const Tensor* tensor;
        const TypeInfo* type;
        std::vector<float> scales;
        std::vector<int> rows;
        uint64_t memory_bytes;
        Buffer<uint8_t> data;  // pages that nobody has touched until it is made; empty: there is no such room
        bool made = false;
    };
    static void fill_rows(const Copy& copy, int64_t begin, int64_t end, uint8_t* out);

    mutable std::mutex mutex_;  // engines on one file may be made at once
    std::map<std::string, Copy> copies_;
};

}  // namespace strata
