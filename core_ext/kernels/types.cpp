#include "kernels/types.h"

namespace strata {

namespace {

/// How a tensor of a type is run.
enum class Run : uint8_t { never, by_kernels, as_f16, as_bf16, as_f32 };

struct Row {
    TypeInfo info;
    Run run;
};

constexpr Row row(uint32_t number, const char* name, int block_size, int block_bytes, Run run = Run::never) {
    return {{static_cast<Type>(number), name, block_size, block_bytes}, run};
}

// Numbers, names and block sizes: GGMLQuantizationType and GGML_QUANT_SIZES of the PyPI package gguf 0.19.
constexpr Row ROWS[] = {
    row(0, "F32", 1, 4, Run::by_kernels),
    row(1, "F16", 1, 2, Run::by_kernels),
    row(2, "Q4_0", 32, 18, Run::by_kernels),
    row(3, "Q4_1", 32, 20, Run::by_kernels),
    row(6, "Q5_0", 32, 22, Run::by_kernels),
    row(7, "Q5_1", 32, 24, Run::by_kernels),
    row(8, "Q8_0", 32, 34, Run::by_kernels),
    row(9, "Q8_1", 32, 40),
    row(10, "Q2_K", 256, 84, Run::by_kernels),
    row(11, "Q3_K", 256, 110, Run::by_kernels),
    row(12, "Q4_K", 256, 144, Run::by_kernels),
    row(13, "Q5_K", 256, 176, Run::by_kernels),
    row(14, "Q6_K", 256, 210, Run::by_kernels),
    row(15, "Q8_K", 256, 292),
    row(16, "IQ2_XXS", 256, 66, Run::as_f32),
    row(17, "IQ2_XS", 256, 74, Run::as_f32),
    row(18, "IQ3_XXS", 256, 98, Run::by_kernels),
    row(19, "IQ1_S", 256, 50, Run::as_f32),
    row(20, "IQ4_NL", 32, 18, Run::by_kernels),
    row(21, "IQ3_S", 256, 110, Run::by_kernels),
    row(22, "IQ2_S", 256, 82, Run::as_f32),
    row(23, "IQ4_XS", 256, 136, Run::by_kernels),
    row(24, "I8", 1, 1),
    row(25, "I16", 1, 2),
    row(26, "I32", 1, 4),
    row(27, "I64", 1, 8),
    row(28, "F64", 1, 8),
    row(29, "IQ1_M", 256, 56, Run::as_f32),
    row(30, "BF16", 1, 2, Run::by_kernels),
    row(34, "TQ1_0", 256, 54, Run::as_f16),  // -d, 0 or d, d a float16
    row(35, "TQ2_0", 256, 66, Run::as_f16),
    row(39, "MXFP4", 32, 17, Run::as_bf16),  // 3 bits times a power of two
    row(40, "NVFP4", 64, 36, Run::as_bf16),  // 3 bits times 4 bits and a power of two
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
    return row && row->run == Run::by_kernels ? &row->info : nullptr;
}

const TypeInfo* copy_info(uint32_t ggml_type) {
    const Row* row = find(ggml_type);
    switch (row ? row->run : Run::never) {
        case Run::as_f16:
            return &type_info(Type::F16);
        case Run::as_bf16:
            return &type_info(Type::BF16);
        case Run::as_f32:
            return &type_info(Type::F32);
        case Run::by_kernels:
        case Run::never:
            break;
    }
    return nullptr;
}

const char* type_name(uint32_t ggml_type) {
    const Row* row = find(ggml_type);
    return row ? row->info.name : nullptr;
}

std::string runnable_types() {
    std::string names;
    for (const Row& row : ROWS)
        if (row.run != Run::never) names += (names.empty() ? "" : ", ") + std::string(row.info.name);
    return names;
}

}  // namespace strata
