#include "kernels/cpu/kernels.h"

#include <cstring>
#include <string>

#include "base/error.h"
#include "kernels/cpu/activations.h"

namespace strata::cpu {

extern const Kernels PORTABLE;
#if defined(__x86_64__)
extern const Kernels AVX2, AVX512;
#endif

namespace {

struct Choice {
    const Kernels* kernels;
    bool here;  // the machine has what they need
};

/// Best first.
const std::vector<Choice>& choices() {
    static const std::vector<Choice> all = {
#if defined(__x86_64__)
        {&AVX512, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx2") &&
                      __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")},
        {&AVX2,
         __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")},
#endif
        {&PORTABLE, true},
    };
    return all;
}

}  // namespace

ActFormat act_format(Type weight_type) {
    const int block = type_info(weight_type).block_size;
    return block == 256 ? ActFormat::Q8_256 : block == 32 ? ActFormat::Q8_32 : ActFormat::F32;
}

size_t act_row_bytes(ActFormat format, int n_in) {
    switch (format) {
        case ActFormat::Q8_32:
            return Q8_32Layout(n_in).bytes;
        case ActFormat::Q8_256:
            return Q8_256Layout(n_in).bytes;
        case ActFormat::F32:
            break;
    }
    return align64(sizeof(float) * static_cast<size_t>(n_in));
}

size_t attention_scratch(int n_queries, int head_dim, int v_dim) {
    const size_t widest = static_cast<size_t>(head_dim > v_dim ? head_dim : v_dim);
    return static_cast<size_t>(n_queries) * (ATTENTION_BLOCK + 2) +
           8 * widest;  // scores, running (m, l), eight cells
}

std::vector<const Kernels*> kernels_here() {
    std::vector<const Kernels*> found;
    for (const Choice& choice : choices())
        if (choice.here) found.push_back(choice.kernels);
    return found;
}

const Kernels& kernels(const char* name) {
    if (!name || !*name) return *kernels_here().front();
    std::string known;
    for (const Choice& choice : choices()) {
        known += (known.empty() ? "" : ", ") + std::string(choice.kernels->name);
        if (std::strcmp(choice.kernels->name, name) != 0) continue;
        if (!choice.here) throw Error(std::string("[kernels] this machine has no ") + name);
        return *choice.kernels;
    }
    throw Error(std::string("[kernels] unknown instruction set \"") + name + "\", expected one of " + known);
}

}  // namespace strata::cpu
