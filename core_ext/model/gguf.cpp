#include "model/gguf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "model/gguf_reader.h"

namespace strata {

namespace {

constexpr uint64_t MAX_ALIGNMENT = 1 << 20;
constexpr uint32_t MAX_DIMS = 4;
// Far beyond what files have: each costs many times its bytes in memory.
constexpr uint64_t MAX_KEYS = 1 << 16, MAX_TENSORS = 1 << 20;

std::string in_quotes(std::string_view text) { return "\"" + shown(text) + "\""; }

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string out = "[";
    for (const int64_t n : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(n);
    return out + "]";
}

std::string kind_of(const GgufValue& value) {
    if (const auto* array = std::get_if<GgufArray>(&value))
        return "an array of " + std::to_string(array->count) + " x " + gguf_type_name(array->element_type);
    constexpr const char* KINDS[] = {"an integer", "an integer", "a float", "a boolean", "a string"};
    return KINDS[value.index()];
}

std::optional<int64_t> as_integer(const GgufValue& value) {
    if (const auto* n = std::get_if<int64_t>(&value)) return *n;
    if (const auto* n = std::get_if<uint64_t>(&value); n && *n <= INT64_MAX) return static_cast<int64_t>(*n);
    return std::nullopt;
}

/// The product of the dimensions other than zero, or nothing if it passes int64.
std::optional<int64_t> product(const std::vector<int64_t>& shape) {
    int64_t product = 1;
    for (const int64_t n : shape) {
        if (n == 0) continue;
        if (product > INT64_MAX / n) return std::nullopt;
        product *= n;
    }
    return product;
}

template <typename T>
T load(const uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    return value;
}

}  // namespace

void GgufFile::fail(const std::string& what) const { throw Error("[gguf] " + shown(name_) + ": " + what); }

void GgufFile::read_all() {
    GgufReader in(*this, bytes_);
    const uint8_t* magic = in.take(4);
    if (std::memcmp(magic, "GGUF", 4) != 0)
        fail("is no GGUF file: it begins with " + [&] {
            constexpr char DIGITS[] = "0123456789abcdef";
            std::string hex;
            for (int i = 0; i < 4; ++i) hex += {DIGITS[magic[i] >> 4], DIGITS[magic[i] & 15], ' '};
            return hex + "instead of 47 47 55 46 (GGUF)";
        }());
    version_ = in.number<uint32_t>();
    if (version_ != 0 && (version_ & 0xFFFF) == 0) fail("is big-endian, expected little-endian");
    if (version_ != 2 && version_ != 3) fail("has version " + std::to_string(version_) + ", expected 2 or 3");

    const auto n_tensors = in.number<uint64_t>();
    const auto n_keys = in.number<uint64_t>();
    in.expect(n_keys, 8 + 1 + 4 + 1, "keys", MAX_KEYS);
    for (uint64_t i = 0; i < n_keys; ++i) {
        in.enter("key " + std::to_string(i));
        const std::string_view key = in.identifier();
        in.enter("key " + in_quotes(key));
        if (!values_.try_emplace(key, in.value(in.number<uint32_t>())).second) in.fail("appears twice");
        keys_.push_back(key);
    }
    check_metadata();

    in.enter("header");
    in.expect(n_tensors, 8 + 1 + 4 + 4 + 8, "tensors", MAX_TENSORS);
    for (uint64_t i = 0; i < n_tensors; ++i) {
        in.enter("tensor " + std::to_string(i));
        read_tensor(in);
    }
    place_tensors((in.position() + alignment_ - 1) / alignment_ * alignment_);
}

void GgufFile::check_metadata() {
    alignment_ = static_cast<uint64_t>(integer_or("general.alignment", 32, 0, INT64_MAX));
    if (alignment_ == 0 || (alignment_ & (alignment_ - 1)) != 0 || alignment_ > MAX_ALIGNMENT)
        fail("general.alignment is " + std::to_string(alignment_) + ", expected a power of two up to " +
             std::to_string(MAX_ALIGNMENT));
}

void GgufFile::read_tensor(GgufReader& in) {
    const std::string_view name = in.identifier();
    const std::string label = "tensor " + shown(name);
    in.enter(label);
    if (!tensor_index_.try_emplace(name, tensors_.size()).second) in.fail("appears twice");

    Tensor tensor;
    tensor.name = name;
    const auto n_dims = in.number<uint32_t>();
    if (n_dims > MAX_DIMS)
        in.fail("has " + std::to_string(n_dims) + " dimensions, expected at most " +
                std::to_string(MAX_DIMS));
    for (uint32_t d = 0; d < n_dims; ++d) {
        const auto n = in.number<uint64_t>();
        if (n > INT64_MAX) in.fail("has a dimension of " + std::to_string(n));
        tensor.shape.push_back(static_cast<int64_t>(n));
    }
    if (n_dims == 0) tensor.shape = {1};  // a scalar
    tensor.type = in.number<uint32_t>();
    tensor.offset = in.number<uint64_t>();  // from the start of the data, until place_tensors

    const TypeInfo* info = storage_info(tensor.type);
    if (!info) in.fail("has the unknown type " + std::to_string(tensor.type));
    if (tensor.shape[0] % info->block_size != 0)
        in.fail("has rows of " + std::to_string(tensor.shape[0]) + " values, expected a multiple of " +
                std::to_string(info->block_size) + " (" + info->name + ")");
    const auto n_values = product(tensor.shape);
    if (!n_values || *n_values / info->block_size > INT64_MAX / info->block_bytes)
        in.fail("has the impossible shape " + shape_text(tensor.shape));
    const bool empty = std::ranges::count(tensor.shape, 0) > 0;
    if (!empty) tensor.size_bytes = static_cast<uint64_t>(*n_values / info->block_size * info->block_bytes);
    tensors_.push_back(std::move(tensor));
}

void GgufFile::place_tensors(uint64_t data_start) {
    const uint64_t available = bytes_.size() > data_start ? bytes_.size() - data_start : 0;
    for (Tensor& tensor : tensors_) {
        const std::string label = "tensor " + shown(tensor.name);
        if (tensor.offset % alignment_ != 0)
            fail(label + " has offset " + std::to_string(tensor.offset) + ", expected a multiple of " +
                 std::to_string(alignment_));
        const uint64_t left = available > tensor.offset ? available - tensor.offset : 0;
        if (tensor.size_bytes > left)
            fail(label + " at offset " + std::to_string(tensor.offset) + " of the data needs " +
                 std::to_string(tensor.size_bytes) + " bytes, file has " + std::to_string(left) + " left");
        if (tensor.size_bytes == 0) {  // may stand anywhere: nothing of it is read
            tensor.offset = std::min<uint64_t>(data_start, bytes_.size());
        } else {
            tensor.offset += data_start;
        }
        tensor.data = bytes_.data() + tensor.offset;
    }

    std::vector<size_t> order(tensors_.size());
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](size_t i) { return tensors_[i].size_bytes == 0; });
    std::ranges::sort(order, {}, [&](size_t i) { return tensors_[i].offset; });
    for (size_t i = 1; i < order.size(); ++i) {
        const Tensor &before = tensors_[order[i - 1]], &after = tensors_[order[i]];
        if (before.offset + before.size_bytes > after.offset)
            fail("tensors " + shown(before.name) + " and " + shown(after.name) + " overlap at offset " +
                 std::to_string(after.offset));
    }
}

const GgufValue* GgufFile::find(std::string_view key) const {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second;
}

std::string_view GgufFile::text(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) fail("key " + shown(key) + " is missing, expected a string");
    const auto* text = std::get_if<std::string_view>(value);
    if (!text) fail("key " + shown(key) + " holds " + kind_of(*value) + ", expected a string");
    return *text;
}

int64_t GgufFile::integer(std::string_view key, int64_t low, int64_t high) const {
    const std::string expected = high == INT64_MAX
                                     ? ", expected an integer from " + std::to_string(low)
                                     : ", expected " + std::to_string(low) + " to " + std::to_string(high);
    const GgufValue* value = find(key);
    if (!value) fail("key " + shown(key) + " is missing" + expected);
    const auto number = as_integer(*value);
    if (number && *number >= low && *number <= high) return *number;
    const auto* large = std::get_if<uint64_t>(value);
    const std::string came = number  ? std::to_string(*number)
                             : large ? std::to_string(*large)
                                     : kind_of(*value);
    fail("key " + shown(key) + " holds " + came + expected);
}

int64_t GgufFile::integer_or(std::string_view key, int64_t fallback, int64_t low, int64_t high) const {
    return find(key) ? integer(key, low, high) : fallback;
}

double GgufFile::number_or(std::string_view key, double fallback) const {
    const GgufValue* value = find(key);
    if (!value) return fallback;
    double number;
    if (const auto* f = std::get_if<double>(value)) {
        number = *f;
    } else if (const auto* u = std::get_if<uint64_t>(value)) {
        number = static_cast<double>(*u);
    } else if (const auto* i = std::get_if<int64_t>(value)) {
        number = static_cast<double>(*i);
    } else {
        fail("key " + shown(key) + " holds " + kind_of(*value) + ", expected a number");
    }
    if (!std::isfinite(number)) fail("key " + shown(key) + " is not finite");
    return number;
}

std::vector<std::string_view> GgufFile::texts(std::string_view key) const {
    const GgufValue* value = find(key);
    if (!value) fail("key " + shown(key) + " is missing, expected an array of strings");
    const auto* array = std::get_if<GgufArray>(value);
    if (!array || array->element_type != static_cast<uint32_t>(GgufType::STRING))
        fail("key " + shown(key) + " holds " + kind_of(*value) + ", expected an array of strings");
    // Their lengths are read again: somebody may have written to the file since they were checked.
    require_unchanged();
    GgufReader in(*this, {array->data, array->size_bytes});
    in.enter("key " + shown(key));
    std::vector<std::string_view> out(array->count);
    for (std::string_view& text : out) text = in.string();
    require_unchanged();
    return out;
}

std::vector<int64_t> GgufFile::integers(std::string_view key, uint64_t max_count) const {
    const GgufValue* value = find(key);
    if (!value) return {};
    const auto* array = std::get_if<GgufArray>(value);
    if (!array) return {integer(key, INT64_MIN, INT64_MAX)};
    if (array->count > max_count)
        fail("key " + shown(key) + " holds " + std::to_string(array->count) + " elements, expected at most " +
             std::to_string(max_count));
    std::vector<int64_t> out(array->count);
    for (size_t i = 0; i < out.size(); ++i) {
        switch (static_cast<GgufType>(array->element_type)) {
            case GgufType::BOOL:
            case GgufType::U8:
                out[i] = array->data[i];
                break;
            case GgufType::I8:
                out[i] = static_cast<int8_t>(array->data[i]);
                break;
            case GgufType::U16:
                out[i] = load<uint16_t>(array->data + 2 * i);
                break;
            case GgufType::I16:
                out[i] = load<int16_t>(array->data + 2 * i);
                break;
            case GgufType::U32:
                out[i] = load<uint32_t>(array->data + 4 * i);
                break;
            case GgufType::I32:
                out[i] = load<int32_t>(array->data + 4 * i);
                break;
            case GgufType::I64:
                out[i] = load<int64_t>(array->data + 8 * i);
                break;
            case GgufType::U64:
                if (const auto n = load<uint64_t>(array->data + 8 * i); n <= INT64_MAX) {
                    out[i] = static_cast<int64_t>(n);
                    break;
                }
                fail("key " + shown(key) + " holds a number beyond int64 at index " + std::to_string(i));
            default:
                fail("key " + shown(key) + " holds " + kind_of(*value) + ", expected integers");
        }
    }
    return out;
}

const Tensor* GgufFile::tensor(std::string_view name) const {
    const auto it = tensor_index_.find(name);
    return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

/// The tensor of that name if it has this shape (dimensions of 1 may trail, here and there) and a type that
/// can be run.
const Tensor* GgufFile::checked(std::string_view name, const std::vector<int64_t>& shape,
                                bool optional) const {
    const Tensor* tensor = this->tensor(name);
    if (!tensor) {
        if (optional) return nullptr;
        fail("tensor " + shown(name) + " is missing, expected shape " + shape_text(shape));
    }
    const auto dim = [](const std::vector<int64_t>& of, size_t d) { return d < of.size() ? of[d] : 1; };
    for (size_t d = 0; d < MAX_DIMS; ++d)
        if (dim(tensor->shape, d) != dim(shape, d))
            fail("tensor " + shown(name) + " has shape " + shape_text(tensor->shape) + ", expected " +
                 shape_text(shape));
    if (!type_info(tensor->type) && !copy_info(tensor->type))
        fail("tensor " + shown(name) + " has type " + type_name(tensor->type) + ", expected one of " +
             runnable_types());
    return tensor;
}

cpu::Weight GgufFile::weight(std::string_view name, int64_t n_in, int64_t n_out, bool optional) const {
    return stack(name, n_in, n_out, 1, optional);
}

cpu::Weight GgufFile::stack(std::string_view name, int64_t n_in, int64_t n_out, int64_t n,
                            bool optional) const {
    return rows_of(name, n_in, n_out, n, optional, {});
}

cpu::Weight GgufFile::reordered(std::string_view name, int64_t n_in, std::vector<int> rows) const {
    const auto n_out = static_cast<int64_t>(rows.size());
    return rows_of(name, n_in, n_out, 1, false, std::move(rows));
}

/// All rows, in the order given (none: the tensor's).
cpu::Weight GgufFile::rows_of(std::string_view name, int64_t n_in, int64_t n_out, int64_t n, bool optional,
                              std::vector<int> order) const {
    std::vector<int64_t> shape{n_in};
    if (n_out > 1 || n > 1) shape.push_back(n_out);
    if (n > 1) shape.push_back(n);
    const Tensor* tensor = checked(name, shape, optional);
    if (!tensor) return {};
    if (n_in > std::numeric_limits<int>::max() || n_out > std::numeric_limits<int>::max())
        fail("tensor " + shown(name) + " has shape " + shape_text(tensor->shape) +
             ", expected less than 2^31 a side");
    std::vector<float> factors = scales(*tensor, n);
    const TypeInfo* copy = copy_of(*tensor);
    const TypeInfo& info = copy ? *copy : *type_info(tensor->type);
    const bool as_it_lies = !copy && order.empty();
    const uint8_t* data =
        as_it_lies ? tensor->data : copies_.of(*tensor, info, std::move(factors), std::move(order));
    return {info.type, data, static_cast<int>(n_in), static_cast<int>(n_out),
            static_cast<size_t>(n_in / info.block_size * info.block_bytes)};
}

/// NAME.scale beside NAME.weight: what all values of the weight (or of each expert's) are multiplied with.
const Tensor* GgufFile::scale_of(const Tensor& tensor) const {
    constexpr std::string_view ENDING = ".weight";
    if (!tensor.name.ends_with(ENDING)) return nullptr;
    return this->tensor(tensor.name.substr(0, tensor.name.size() - ENDING.size()) + ".scale");
}

std::vector<float> GgufFile::scales(const Tensor& tensor, int64_t n) const {
    const Tensor* scale = scale_of(tensor);
    if (!scale) return {};
    if (!copy_info(tensor.type))
        fail("tensor " + shown(scale->name) + " scales one of type " + type_name(tensor.type) +
             ", expected NVFP4 or another type that is dequantised at load");
    return vector(scale->name, n);
}

const TypeInfo* GgufFile::copy_of(const Tensor& tensor) const {
    const TypeInfo* copy = copy_info(tensor.type);
    return copy && scale_of(tensor) ? &type_info(Type::F32) : copy;
}

uint64_t GgufFile::loaded_bytes(const Tensor& tensor) const {
    const TypeInfo* copy = copy_of(tensor);
    if (!copy) return tensor.size_bytes;
    const TypeInfo& info = *storage_info(tensor.type);
    return tensor.size_bytes / info.block_bytes * info.block_size * copy->block_bytes;
}

std::vector<float> GgufFile::vector(std::string_view name, int64_t n, bool optional) const {
    return matrix(name, n, 1, optional);
}

std::vector<float> GgufFile::matrix(std::string_view name, int64_t n_in, int64_t n_rows,
                                    bool optional) const {
    const Tensor* tensor = checked(
        name, n_rows == 1 ? std::vector<int64_t>{n_in} : std::vector<int64_t>{n_in, n_rows}, optional);
    if (!tensor || tensor->size_bytes == 0) return {};
    std::vector<float> out(static_cast<size_t>(n_in * n_rows));
    // One instruction set's values on every machine, whatever the devices compute with.
    cpu::kernels("portable")
        .dequantize(static_cast<Type>(tensor->type), tensor->data, static_cast<int64_t>(out.size()),
                    out.data());
    return out;
}

}  // namespace strata
