#include "model/dequantised.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include "base/cpu.h"
#include "base/text.h"
#include "kernels/cpu/kernels.h"

namespace strata {

namespace {

constexpr int64_t PIECE = 4096;  // values at a time: whole blocks of every type
constexpr size_t MOST_THREADS = 16;

void store(Type type, const float* values, int64_t n, uint8_t* out) {
    if (type == Type::F32) {
        std::memcpy(out, values, static_cast<size_t>(n) * sizeof(float));
    } else if (type == Type::F16) {
        cpu::kernels("portable").store_f16(values, static_cast<int>(n), reinterpret_cast<uint16_t*>(out));
    } else {  // BF16: the upper half
        for (int64_t i = 0; i < n; ++i)
            std::memcpy(out + 2 * i, reinterpret_cast<const uint8_t*>(values + i) + 2, 2);
    }
}

/// Values [begin, end) of the tensor, whole pieces but for the last.
void copy_values(const Tensor& tensor, const TypeInfo& to, const std::vector<float>& scales, int64_t n_values,
                 int64_t begin, int64_t end, uint8_t* out) {
    const TypeInfo& from = *storage_info(tensor.type);
    // One instruction set's values on every machine, whatever the devices compute with.
    const auto dequantize = cpu::kernels("portable").dequantize;
    const int64_t share = n_values / static_cast<int64_t>(std::max<size_t>(1, scales.size()));
    float values[PIECE];
    for (int64_t at = begin; at < end; at += PIECE) {
        const int64_t n = std::min(PIECE, end - at);
        dequantize(from.type, tensor.data + at / from.block_size * from.block_bytes, n, values);
        if (!scales.empty())
            for (int64_t i = 0; i < n; ++i) values[i] *= scales[static_cast<size_t>((at + i) / share)];
        store(to.type, values, n, out + at * to.block_bytes);
    }
}

}  // namespace

const uint8_t* DequantisedCopies::of(const Tensor& tensor, const TypeInfo& type,
                                     const std::vector<float>& scales) {
    if (tensor.size_bytes == 0) return tensor.data;  // nothing of it is read
    const std::lock_guard lock(mutex_);
    if (const auto made = copies_.find(tensor.name); made != copies_.end()) return made->second.data.data();
    const TypeInfo& from = *storage_info(tensor.type);
    const auto n = static_cast<int64_t>(tensor.size_bytes / from.block_bytes * from.block_size);
    Copy copy{from.type, tensor.size_bytes, Buffer<uint8_t>(static_cast<size_t>(n) * type.block_bytes)};

    const int64_t pieces = (n + PIECE - 1) / PIECE;
    const auto n_threads = static_cast<int64_t>(std::clamp<size_t>(usable_cores().size(), 1, MOST_THREADS));
    const int64_t each = (pieces + n_threads - 1) / n_threads * PIECE;
    std::vector<std::jthread> threads;
    for (int64_t begin = 0; begin < n; begin += each)
        threads.emplace_back([&, begin] {
            copy_values(tensor, type, scales, n, begin, std::min(n, begin + each), copy.data.data());
        });
    threads.clear();  // joins
    return copies_.emplace(tensor.name, std::move(copy)).first->second.data.data();
}

bool DequantisedCopies::has(const std::string& tensor) const {
    const std::lock_guard lock(mutex_);
    return copies_.contains(tensor);
}

std::string DequantisedCopies::notice(const std::string& file) const {
    const std::lock_guard lock(mutex_);
    if (copies_.empty()) return "";
    std::set<std::string> types;
    uint64_t stored = 0, taken = 0;
    for (const auto& [name, copy] : copies_) {
        types.insert(storage_info(static_cast<uint32_t>(copy.from))->name);
        stored += copy.stored_bytes;
        taken += copy.data.size_bytes();
    }
    std::string names;
    for (const std::string& type : types) names += (names.empty() ? "" : ", ") + type;
    const auto mib = [](uint64_t bytes) { return std::to_string((bytes + (1 << 19)) >> 20) + " MiB"; };
    return "[model] " + shown(file) + ": no kernels for " + names + ": " + std::to_string(copies_.size()) +
           (copies_.size() == 1 ? " tensor" : " tensors") + " of " + mib(stored) +
           " dequantised at load, which takes " + mib(taken) + " of memory";
}

}  // namespace strata
