#pragma once

#include <cstddef>
#include <cstdint>

namespace strata {

/// Storage types of a GGUF file, by ggml's numbers.
enum class Type : uint32_t {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    BF16 = 30,
};

struct TypeInfo {
    Type type;
    const char* name;
    int block_size;   // values in a block
    int block_bytes;  // bytes of a block
};

/// nullptr for a type without kernels.
const TypeInfo* type_info(uint32_t ggml_type);
inline const TypeInfo& type_info(Type type) { return *type_info(static_cast<uint32_t>(type)); }

/// The same for any type of gguf 0.19, also of those without kernels (its `type` may be none of the
/// enumerators); nullptr for an unknown number.
const TypeInfo* storage_info(uint32_t ggml_type);

/// The ggml name of any type of gguf 0.19, also of those without kernels; nullptr for an unknown number.
const char* type_name(uint32_t ggml_type);

}  // namespace strata
