#include "bind/gguf.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstring>

#include "base/error.h"
#include "bind/bind.h"

namespace py = pybind11;
using namespace strata;

/// str where the bytes are UTF-8, else bytes: a string value may hold anything.
static py::object text_or_bytes(std::string_view text) {
    PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "strict");
    if (decoded) return py::reinterpret_steal<py::object>(decoded);
    PyErr_Clear();
    return py::bytes(text.data(), text.size());
}

/// GGUF value type numbers.
enum GgufType : uint32_t { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 };

static py::object number_array(const GgufArray& array) {
    static const char* formats[] = {"<u1", "<i1", "<u2", "<i2", "<u4", "<i4", "<f4", "?", "", "", "<u8", "<i8", "<f8"};
    const py::dtype dtype = py::dtype::from_args(py::str(formats[array.element_type]));
    return py::array(dtype, {array.count}, {dtype.itemsize()}, array.data);  // a copy: the file may go
}

static py::list string_array(const GgufArray& array) {
    py::list strings(array.count);
    const uint8_t* at = array.data;  // u64 length, bytes; lengths were checked when the file was read
    for (uint64_t i = 0; i < array.count; ++i) {
        uint64_t length = 0;
        std::memcpy(&length, at, sizeof(length));
        strings[i] = text_or_bytes({reinterpret_cast<const char*>(at) + sizeof(length), length});
        at += sizeof(length) + length;
    }
    return strings;
}

static py::object array_object(const GgufFile& file, const std::string& key, const GgufArray& array) {
    if (array.element_type == STRING) return string_array(array);
    if (array.element_type == ARRAY)
        throw Error("[gguf] " + file.name() + ": key " + key + " is an array of arrays, which nothing here reads");
    return number_array(array);
}

static const GgufArray& find_array(const GgufFile& file, const std::string& key) {
    const GgufValue* value = file.find(key);
    if (!value) throw Error("[gguf] " + file.name() + ": key " + key + " is missing");
    const auto* array = std::get_if<GgufArray>(value);
    if (!array) throw Error("[gguf] " + file.name() + ": key " + key + " should be an array");
    return *array;
}

static py::object value_object(const GgufFile& file, const std::string& key, const GgufValue& value) {
    if (const auto* text = std::get_if<std::string_view>(&value)) return text_or_bytes(*text);
    if (const auto* array = std::get_if<GgufArray>(&value)) return array_object(file, key, *array);
    return std::visit(
        [](const auto& scalar) -> py::object {
            if constexpr (std::is_arithmetic_v<std::decay_t<decltype(scalar)>>) return py::cast(scalar);
            return py::none();
        },
        value);
}

void bind_gguf(py::module_& m) {
    constexpr uint64_t LISTED = 64;  // longer arrays (vocabularies) are asked for by name
    py::class_<ModelFileHandle, std::shared_ptr<ModelFileHandle>>(m, "ModelFile")
        .def(py::init([](const std::string& path) {
                 py::gil_scoped_release release;
                 return std::make_shared<ModelFileHandle>(ModelFileHandle{GgufFile::open(path)});
             }),
             py::arg("path"))
        .def_property_readonly("path", [](const ModelFileHandle& h) { return h.file->path(); })
        .def_property_readonly("name", [](const ModelFileHandle& h) { return h.file->name(); })
        .def_property_readonly("version", [](const ModelFileHandle& h) { return h.file->version(); })
        .def_property_readonly("alignment", [](const ModelFileHandle& h) { return h.file->alignment(); })
        .def_property_readonly("size_bytes", [](const ModelFileHandle& h) { return h.file->size_bytes(); })
        .def("keys",
             [](const ModelFileHandle& h) {
                 py::list keys;
                 for (std::string_view key : h.file->keys()) keys.append(py::str(key.data(), key.size()));
                 return keys;
             })
        .def("metadata",
             [](const ModelFileHandle& h) {
                 py::dict metadata;
                 for (std::string_view key : h.file->keys()) {
                     const GgufValue& value = *h.file->find(key);
                     const auto* array = std::get_if<GgufArray>(&value);
                     if (array && (array->count > LISTED || array->element_type == ARRAY)) continue;
                     py::object object = value_object(*h.file, std::string(key), value);
                     metadata[py::str(key.data(), key.size())] =
                         array && array->element_type != STRING ? py::object(object.attr("tolist")()) : object;
                 }
                 return metadata;
             })
        .def("array",
             [](const ModelFileHandle& h, const std::string& key) {
                 return array_object(*h.file, key, find_array(*h.file, key));
             },
             py::arg("key"))
        .def("array_length",
             [](const ModelFileHandle& h, const std::string& key) { return find_array(*h.file, key).count; }, py::arg("key"))
        .def("tensors", [](const ModelFileHandle& h) {
            py::list tensors;
            for (const Tensor& t : h.file->tensors())
                tensors.append(py::make_tuple(t.name, type_name(t.type), t.type, py::tuple(py::cast(t.shape)), t.offset,
                                              t.size_bytes));
            return tensors;
        });
}
