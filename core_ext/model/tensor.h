#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

/// One tensor of a file: checked to lie within it, its row length a multiple of its type's block.
struct Tensor {
    std::string name;
    uint32_t type = 0;           // ggml number; kernels may not exist for it (type_info)
    std::vector<int64_t> shape;  // ggml order: shape[0] is the contiguous row length
    const uint8_t* data = nullptr;
    uint64_t size_bytes = 0;
    uint64_t offset = 0;  // from the start of its file
    int shard = 0;        // which file of a set that is, from 0
};

}  // namespace strata
