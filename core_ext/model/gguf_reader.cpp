#include "model/gguf_reader.h"

#include <iterator>

#include "base/text.h"

namespace strata {

namespace {

constexpr int MAX_ARRAY_DEPTH = 4;          // arrays of arrays; real files have none
constexpr uint64_t MAX_NAME_BYTES = 65535;  // of the specification

/// Bytes of one value; 0 for strings, arrays and unknown types.
uint64_t scalar_bytes(uint32_t value_type) {
    constexpr uint8_t BYTES[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return value_type < std::size(BYTES) ? BYTES[value_type] : 0;
}

}  // namespace

const char* gguf_type_name(uint32_t value_type) {
    constexpr const char* NAMES[] = {"uint8",   "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
                                     "boolean", "string", "array",  "uint64", "int64",  "float64"};
    return value_type < std::size(NAMES) ? NAMES[value_type] : "unknown";
}

void GgufReader::expect(uint64_t count, uint64_t least, const char* what, uint64_t most) const {
    if (count > left() / least)
        fail("announces " + std::to_string(count) + " " + what + ", file has " + std::to_string(left()) +
             " bytes left");
    if (count > most)
        fail("announces " + std::to_string(count) + " " + what + ", expected at most " +
             std::to_string(most));
}

std::string_view GgufReader::identifier() {
    const std::string_view name = string();
    if (name.empty() || name.size() > MAX_NAME_BYTES)
        fail("has a name of " + std::to_string(name.size()) + " bytes, expected 1 to " +
             std::to_string(MAX_NAME_BYTES));
    if (!is_utf8(name)) fail("has a name that is not UTF-8");
    return name;
}

bool GgufReader::boolean() {
    const auto value = number<uint8_t>();
    if (value > 1) fail("holds the boolean " + std::to_string(value) + ", expected 0 or 1");
    return value != 0;
}

GgufValue GgufReader::value(uint32_t type) {
    switch (static_cast<GgufType>(type)) {
        case GgufType::U8:
            return uint64_t{number<uint8_t>()};
        case GgufType::I8:
            return int64_t{number<int8_t>()};
        case GgufType::U16:
            return uint64_t{number<uint16_t>()};
        case GgufType::I16:
            return int64_t{number<int16_t>()};
        case GgufType::U32:
            return uint64_t{number<uint32_t>()};
        case GgufType::I32:
            return int64_t{number<int32_t>()};
        case GgufType::F32:
            return double{number<float>()};
        case GgufType::BOOL:
            return boolean();
        case GgufType::STRING:
            return string();
        case GgufType::ARRAY:
            return array();
        case GgufType::U64:
            return number<uint64_t>();
        case GgufType::I64:
            return number<int64_t>();
        case GgufType::F64:
            return number<double>();
    }
    fail("has the unknown value type " + std::to_string(type));
}

GgufArray GgufReader::array(int depth) {
    if (depth == MAX_ARRAY_DEPTH) fail("nests arrays more than " + std::to_string(MAX_ARRAY_DEPTH) + " deep");
    GgufArray array;
    array.element_type = number<uint32_t>();
    array.count = number<uint64_t>();
    const uint64_t start = position_;
    array.data = bytes_.data() + start;
    switch (static_cast<GgufType>(array.element_type)) {
        case GgufType::STRING:
            expect(array.count, 8, "strings");
            for (uint64_t i = 0; i < array.count; ++i) string();
            break;
        case GgufType::ARRAY:
            expect(array.count, 12, "arrays");
            for (uint64_t i = 0; i < array.count; ++i) this->array(depth + 1);
            break;
        case GgufType::BOOL:
            expect(array.count, 1, "booleans");
            for (uint64_t i = 0; i < array.count; ++i) boolean();
            break;
        default: {
            const uint64_t bytes = scalar_bytes(array.element_type);
            if (bytes == 0)
                fail("is an array of the unknown value type " + std::to_string(array.element_type));
            expect(array.count, bytes, "array elements");
            take(array.count * bytes);
        }
    }
    array.size_bytes = position_ - start;
    return array;
}

}  // namespace strata
