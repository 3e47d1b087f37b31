#include "bind/gguf.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>

#include "base/text.h"
#include "bind/bind.h"
#include "model/architecture.h"
#include "model/draft_file.h"
#include "model/gguf_reader.h"

namespace py = pybind11;

using namespace strata;

namespace {

constexpr uint64_t SMALL_ARRAY = 64;  // elements; longer ones are no part of metadata()
constexpr auto NESTED = static_cast<uint32_t>(GgufType::ARRAY);

/// str where the bytes are UTF-8, bytes where they are not.
py::object text(std::string_view value) {
    if (PyObject* str = PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), nullptr))
        return py::reinterpret_steal<py::object>(str);
    PyErr_Clear();
    return py::bytes(value.data(), value.size());
}

py::object path_text(const std::string& path) {
    return py::reinterpret_steal<py::object>(
        PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

py::list list_of(const GgufFile& file, const GgufArray& array);

py::object object_of(const GgufFile& file, const GgufValue& value) {
    return std::visit(
        [&](const auto& held) -> py::object {
            using T = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<T, GgufArray>) return list_of(file, held);
            if constexpr (std::is_same_v<T, std::string_view>) return text(held);
            if constexpr (std::is_arithmetic_v<T>) return py::cast(held);
        },
        value);
}

py::list list_of(const GgufFile& file, const GgufArray& array) {
    GgufReader in(file, {array.data, array.size_bytes});
    py::list out;
    for (uint64_t i = 0; i < array.count; ++i) out.append(object_of(file, in.value(array.element_type)));
    return out;
}

const GgufArray& array_of(const GgufFile& file, const std::string& key) {
    const GgufValue* value = file.find(key);
    const auto* array = value ? std::get_if<GgufArray>(value) : nullptr;
    if (!array) file.fail("key " + shown(key) + (value ? " is no array" : " is missing, expected an array"));
    return *array;
}

template <typename T>
py::object numbers(const GgufArray& array) {
    py::array_t<T> out(static_cast<py::ssize_t>(array.count));
    std::memcpy(out.mutable_data(), array.data, array.size_bytes);
    return out;
}

py::object array(const ModelFileHandle& model, const std::string& key) {
    const GgufArray& array = array_of(*model.file, key);
    switch (static_cast<GgufType>(array.element_type)) {
        case GgufType::U8:
            return numbers<uint8_t>(array);
        case GgufType::I8:
            return numbers<int8_t>(array);
        case GgufType::U16:
            return numbers<uint16_t>(array);
        case GgufType::I16:
            return numbers<int16_t>(array);
        case GgufType::U32:
            return numbers<uint32_t>(array);
        case GgufType::I32:
            return numbers<int32_t>(array);
        case GgufType::F32:
            return numbers<float>(array);
        case GgufType::BOOL:
            return numbers<bool>(array);
        case GgufType::U64:
            return numbers<uint64_t>(array);
        case GgufType::I64:
            return numbers<int64_t>(array);
        case GgufType::F64:
            return numbers<double>(array);
        case GgufType::STRING:
        case GgufType::ARRAY:
            break;
    }
    return list_of(*model.file, array);
}

py::dict metadata(const ModelFileHandle& model) {
    const GgufFile& file = *model.file;
    py::dict out;
    for (const std::string_view key : file.keys()) {
        const GgufValue* value = file.find(key);
        if (!value) break;  // the key's bytes are not what they were
        const auto* array = std::get_if<GgufArray>(value);
        const bool listed = !array || (array->count <= SMALL_ARRAY && array->element_type != NESTED);
        if (listed) out[text(key)] = object_of(file, *value);
    }
    file.require_unchanged();
    return out;
}

py::list keys(const ModelFileHandle& model) {
    py::list out;
    for (const std::string_view key : model.file->keys()) out.append(text(key));
    model.file->require_unchanged();
    return out;
}

py::list tensors(const ModelFileHandle& model) {
    py::list out;
    for (const Tensor& tensor : model.file->tensors()) {
        py::tuple shape(tensor.shape.size());
        for (size_t d = 0; d < tensor.shape.size(); ++d) shape[d] = py::int_(tensor.shape[d]);
        out.append(py::make_tuple(tensor.name, type_name(tensor.type), tensor.type, shape, tensor.offset,
                                  tensor.size_bytes, tensor.shard, model.file->loaded_bytes(tensor),
                                  Architecture::reorders(*model.file, tensor)));
    }
    return out;
}

}  // namespace

void bind_gguf(py::module_& m) {
    m.def("architectures", &Architecture::known, "Names of the architectures that can be run.");
    using Model = ModelFileHandle;  // shared with an engine on it
    py::class_<Model, std::shared_ptr<Model>>(m, "ModelFile", "A GGUF file, mapped read-only and checked.")
        .def(py::init([](const std::string& path) {
                 py::gil_scoped_release release;
                 return Model{GgufFile::open(path)};
             }),
             py::arg("path"), "Opens a file; raises Error with one line that says what is wrong with it.")
        .def_property_readonly("path", [](const Model& model) { return path_text(model.file->path()); })
        .def_property_readonly("name", [](const Model& model) { return path_text(model.file->name()); })
        .def_property_readonly("version", [](const Model& model) { return model.file->version(); })
        .def_property_readonly("alignment", [](const Model& model) { return model.file->alignment(); })
        .def_property_readonly("size_bytes", [](const Model& model) { return model.file->size_bytes(); })
        .def("metadata", &metadata,
             "Key -> value in the file's order. Strings that are not UTF-8 are bytes; arrays of more than 64 "
             "elements "
             "are left out (array).")
        .def("keys", &keys, "Every key, in the file's order.")
        .def(
            "array",
            [](const Model& model, const std::string& key) {
                model.file->require_unchanged();  // lengths within the array were checked when it was opened
                py::object values = array(model, key);
                model.file->require_unchanged();
                return values;
            },
            py::arg("key"), "An array of any length: strings as a list of str or bytes, numbers as numpy.")
        .def(
            "array_length",
            [](const Model& model, const std::string& key) { return array_of(*model.file, key).count; },
            py::arg("key"))
        .def(
            "require_draft",
            [](const Model& model, const Model& draft) { require_draft_of(*model.file, *draft.file); },
            py::arg("draft"),
            "Raises Error unless the other file holds this model's draft layer; shapes are left to the "
            "engine.")
        .def("tensors", &tensors,
             "[(name, type name, type number, shape in ggml order, offset, size_bytes, shard, loaded_bytes, "
             "reordered)]");
}
