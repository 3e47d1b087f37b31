#include "model/copies.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <thread>

#include "base/cpu.h"
#include "base/text.h"
#include "kernels/cpu/kernels.h"

namespace strata {

namespace {

constexpr int64_t PIECE = 4096;  // values at a time: whole blocks of every type
constexpr size_t MOST_THREADS = 16;

int64_t n_values(const Tensor& tensor) {
    const TypeInfo& info = *storage_info(tensor.type);
    return static_cast<int64_t>(tensor.size_bytes) / info.block_bytes * info.block_size;
}

/// Float32 values as F32, F16 or BF16.
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

/// The tensor's values [at, at + n), n <= PIECE; `share` of them have a scale together.
void dequantise(const Tensor& tensor, int64_t at, int64_t n, const std::vector<float>& scales, int64_t share,
                float* values) {
    const TypeInfo& from = *storage_info(tensor.type);
    // One instruction set's values on every machine, whatever the devices compute with.
    cpu::kernels("portable")
        .dequantize(from.type, tensor.data + at / from.block_size * from.block_bytes, n, values);
    if (!scales.empty())
        for (int64_t i = 0; i < n; ++i) values[i] *= scales[static_cast<size_t>((at + i) / share)];
}

std::string mib(uint64_t bytes) { return std::to_string((bytes + (1 << 19)) >> 20) + " MiB"; }

/// "ssm_in" of blk.3.ssm_in.weight.
std::string kind_of(const std::string& tensor) {
    const size_t end = tensor.rfind('.'), begin = tensor.rfind('.', end - 1) + 1;
    return tensor.substr(begin, end - begin);
}

/// Tensors that were copied for the same reason.
struct Group {
    std::set<std::string> names;  // of their types or kinds
    int n = 0;
    uint64_t stored_bytes = 0, memory_bytes = 0;

    void add(const std::string& name, uint64_t stored, uint64_t memory) {
        names.insert(name);
        ++n;
        stored_bytes += stored;
        memory_bytes += memory;
    }
    std::string all_names() const {
        std::string all;
        for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
        return all;
    }
    std::string tensors() const {
        return std::to_string(n) + (n == 1 ? " tensor" : " tensors") + " of " + mib(stored_bytes);
    }
    std::string cost() const { return ", which takes " + mib(memory_bytes) + " of memory"; }
};

}  // namespace

/// Rows [begin, end) of the copy.
void TensorCopies::fill_rows(const Copy& copy, int64_t begin, int64_t end, uint8_t* out) {
    const Tensor& tensor = *copy.tensor;
    const TypeInfo &from = *storage_info(tensor.type), &to = *copy.type;
    const int64_t n_in = tensor.shape[0], from_bytes = n_in / from.block_size * from.block_bytes,
                  to_bytes = n_in / to.block_size * to.block_bytes;
    const int64_t share = n_values(tensor) / static_cast<int64_t>(std::max<size_t>(1, copy.scales.size()));
    float values[PIECE];
    for (int64_t row = begin; row < end; ++row) {
        const int64_t source = copy.rows.empty() ? row : copy.rows[static_cast<size_t>(row)];
        if (from.type == to.type) {
            std::memcpy(out + row * to_bytes, tensor.data + source * from_bytes,
                        static_cast<size_t>(to_bytes));
            continue;
        }
        for (int64_t at = 0; at < n_in; at += PIECE) {
            const int64_t n = std::min(PIECE, n_in - at);
            dequantise(tensor, source * n_in + at, n, copy.scales, share, values);
            store(to.type, values, n, out + row * to_bytes + at * to.block_bytes);
        }
    }
}

const uint8_t* TensorCopies::of(const Tensor& tensor, const TypeInfo& type, std::vector<float> scales,
                                std::vector<int> rows) {
    if (tensor.size_bytes == 0) return tensor.data;  // nothing of it is read
    const std::lock_guard lock(mutex_);
    auto at = copies_.find(tensor.name);
    if (at == copies_.end()) {
        const auto bytes = static_cast<uint64_t>(n_values(tensor) / type.block_size * type.block_bytes);
        Copy copy{&tensor, &type, std::move(scales), std::move(rows), bytes, {}};
        try {
            copy.data = Buffer<uint8_t>(bytes);
        } catch (const std::bad_alloc&) {  // said, with all others, before they are made
        }
        at = copies_.emplace(tensor.name, std::move(copy)).first;
    }
    const Copy& copy = at->second;
    return copy.data.size() ? copy.data.data() : tensor.data;
}

TensorCopies::Asked TensorCopies::asked() const {
    const std::lock_guard lock(mutex_);
    Asked all;
    for (const auto& [name, copy] : copies_) {
        if (copy.made) continue;
        all.stored_bytes += copy.tensor->size_bytes;
        all.memory_bytes += copy.memory_bytes;
    }
    return all;
}

void TensorCopies::make() {
    const std::lock_guard lock(mutex_);
    const auto most = static_cast<int64_t>(std::clamp<size_t>(usable_cores().size(), 1, MOST_THREADS));
    for (auto& [name, copy] : copies_) {
        if (copy.made) continue;
        if (copy.data.size() == 0) throw std::bad_alloc();
        const int64_t n_rows = n_values(*copy.tensor) / copy.tensor->shape[0],
                      each = (n_rows + most - 1) / most;
        std::vector<std::jthread> threads;
        for (int64_t begin = 0; begin < n_rows; begin += each)
            threads.emplace_back(
                [&, begin] { fill_rows(copy, begin, std::min(n_rows, begin + each), copy.data.data()); });
        threads.clear();  // joins
        copy.scales = {};
        copy.rows = {};
        copy.made = true;
    }
}

void TensorCopies::forget_asked() {
    const std::lock_guard lock(mutex_);
    std::erase_if(copies_, [](const auto& entry) { return !entry.second.made; });
}

std::vector<std::string> TensorCopies::notices(const std::string& file) const {
    const std::lock_guard lock(mutex_);
    Group dequantised, reordered;
    for (const auto& [name, copy] : copies_) {
        if (!copy.made) continue;
        if (copy.type->type != static_cast<Type>(copy.tensor->type))
            dequantised.add(type_name(copy.tensor->type), copy.tensor->size_bytes, copy.memory_bytes);
        else
            reordered.add(kind_of(name), copy.tensor->size_bytes, copy.memory_bytes);
    }
    const std::string begins = "[model] " + shown(file) + ": ";
    std::vector<std::string> lines;
    if (dequantised.n)
        lines.push_back(begins + "no kernels for " + dequantised.all_names() + ": " + dequantised.tensors() +
                        " dequantised at load" + dequantised.cost());
    if (reordered.n)
        lines.push_back(begins + "rows of " + shown(reordered.all_names()) +
                        " in another order: " + reordered.tensors() + " copied at load" + reordered.cost());
    return lines;
}

}  // namespace strata
