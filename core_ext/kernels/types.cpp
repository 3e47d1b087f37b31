#include "kernels/types.h"

namespace strata {

namespace {

struct Row {
    TypeInfo info;
    bool has_kernels;
};

constexpr Row row(uint32_t number, const char* name, int block_size, int block_bytes,
                  bool has_kernels = false) {
    return {{static_cast<Type>(number), name, block_size, block_bytes}, has_kernels};
}

// Numbers, names and block sizes: GGMLQuantizationType and GGML_QUANT_SIZES of the PyPI package gguf 0.19.
constexpr Row ROWS[] = {
    row(0, "F32", 1, 4, true),
    row(1, "F16", 1, 2, true),
    row(2, "Q4_0", 32, 18, true),
    row(3, "Q4_1", 32, 20, true),
    row(6, "Q5_0", 32, 22, true),
    row(7, "Q5_1", 32, 24, true),
    row(8, "Q8_0", 32, 34, true),
    row(9, "Q8_1", 32, 40),
    row(10, "Q2_K", 256, 84),
    row(11, "Q3_K", 256, 110),
    row(12, "Q4_K", 256, 144, true),
    row(13, "Q5_K", 256, 176, true),
    row(14, "Q6_K", 256, 210, true),
    row(15, "Q8_K", 256, 292),
    row(16, "IQ2_XXS", 256, 66),
    row(17, "IQ2_XS", 256, 74),
    row(18, "IQ3_XXS", 256, 98),
    row(19, "IQ1_S", 256, 50),
    row(20, "IQ4_NL", 32, 18),
    row(21, "IQ3_S", 256, 110),
    row(22, "IQ2_S", 256, 82),
    row(23, "IQ4_XS", 256, 136),
    row(24, "I8", 1, 1),
    row(25, "I16", 1, 2),
    row(26, "I32", 1, 4),
    row(27, "I64", 1, 8),
    row(28, "F64", 1, 8),
    row(29, "IQ1_M", 256, 56),
    row(30, "BF16", 1, 2, true),
    row(34, "TQ1_0", 256, 54),
    row(35, "TQ2_0", 256, 66),
    row(39, "MXFP4", 32, 17),
    row(40, "NVFP4", 64, 36),
    row(41, "Q1_0", 128, 18),
};

const Row* find(uint32_t ggml_type) {
    for (const Row& row : ROWS)
        if (static_cast<uint32_t>(row.info.type) == ggml_type) return &row;
    return nullptr;
}

}  // namespace

const TypeInfo* storage_info(uint32_t ggml_type) {
    const Row* row = find(ggml_type);
    return row ? &row->info : nullptr;
}

const TypeInfo* type_info(uint32_t ggml_type) {
    const Row* row = find(ggml_type);
    return row && row->has_kernels ? &row->info : nullptr;
}

const char* type_name(uint32_t ggml_type) {
    const Row* row = find(ggml_type);
    return row ? row->info.name : nullptr;
}

}  // namespace strata
