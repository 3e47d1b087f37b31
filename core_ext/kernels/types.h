#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace strata {

/// Storage types of a GGUF file, by ggml's numbers; those that can be run.
enum class Type : uint32_t {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    IQ2_XXS = 16,
    IQ2_XS = 17,
    IQ3_XXS = 18,
    IQ1_S = 19,
    IQ4_NL = 20,
    IQ3_S = 21,
    IQ2_S = 22,
    IQ4_XS = 23,
    IQ1_M = 29,
    BF16 = 30,
    TQ1_0 = 34,
    TQ2_0 = 35,
    MXFP4 = 39,
    NVFP4 = 40,
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

/// For a type without kernels whose tensors are dequantised when a model is loaded: the type of that copy,
/// the smallest one that holds every value exactly. nullptr for the others.
const TypeInfo* copy_info(uint32_t ggml_type);

/// The same as type_info for any type of gguf 0.19, also of those that can't be run (its `type` may be none
/// of the enumerators); nullptr for an unknown number.
const TypeInfo* storage_info(uint32_t ggml_type);

/// The ggml name of any type of gguf 0.19, also of those that can't be run; nullptr for an unknown number.
const char* type_name(uint32_t ggml_type);

/// "F32, F16, ..": those that can be run.
std::string runnable_types();

}  // namespace strata
