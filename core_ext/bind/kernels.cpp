#include "kernels/cpu/kernels.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "base/aligned.h"
#include "base/error.h"
#include "bind/bind.h"
#include "kernels/cpu/bandwidth.h"

/// For inspection and tests; of the product only `devices` calls one from Python, to measure.

namespace py = pybind11;
using namespace strata;

namespace {

template <typename T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

const TypeInfo& known_type(uint32_t number) {
    const TypeInfo* info = type_info(number);
    if (!info) throw Error("[kernels] no kernels for type " + std::to_string(number));
    return *info;
}

void expect(bool held, const std::string& what) {
    if (!held) throw Error("[kernels] expected " + what);
}

/// Of any type that can be run, also of those without products.
Array<float> dequantize(uint32_t type, const Array<uint8_t>& blocks, int64_t n) {
    const TypeInfo& info = copy_info(type) ? *storage_info(type) : known_type(type);
    expect(n >= 0 && n % info.block_size == 0 && blocks.size() == n / info.block_size * info.block_bytes,
           "a whole number of " + std::string(info.name) + " blocks for " + std::to_string(n) +
               " values, got " + std::to_string(blocks.size()) + " bytes");
    Array<float> out(n);
    cpu::kernels().dequantize(info.type, blocks.data(), n, out.mutable_data());
    return out;
}

/// blocks [n_out, row_bytes], x [rows, n_in] -> [rows, n_out], the outputs computed in ranges that end at
/// `splits`.
Array<float> matmul(uint32_t type, const Array<uint8_t>& blocks, const Array<float>& x,
                    const std::string& isa, std::vector<int> splits) {
    const TypeInfo& info = known_type(type);
    const cpu::Kernels& kernels = cpu::kernels(isa.c_str());
    expect(blocks.ndim() == 2 && x.ndim() == 2, "blocks [n_out, row_bytes] and x [rows, n_in]");
    const int n_out = static_cast<int>(blocks.shape(0)), rows = static_cast<int>(x.shape(0)),
              n_in = static_cast<int>(x.shape(1));
    expect(n_in % info.block_size == 0 && blocks.shape(1) == n_in / info.block_size * info.block_bytes,
           std::string(info.name) + " rows of " + std::to_string(n_in) + " values, got " +
               std::to_string(blocks.shape(1)) + " bytes a row");
    splits.push_back(n_out);
    const cpu::ActFormat format = cpu::act_format(info.type);
    const size_t stride = cpu::act_row_bytes(format, n_in);
    Buffer<uint8_t> activations(stride * static_cast<size_t>(rows));
    Array<float> y({rows, n_out});
    for (int r = 0; r < rows; ++r)
        kernels.quantize(format, x.data(r), n_in, activations.data() + stride * static_cast<size_t>(r));
    const cpu::Weight weight{info.type, blocks.data(), n_in, n_out, static_cast<size_t>(blocks.shape(1))};
    int begin = 0;
    for (int end : splits) {
        expect(begin <= end && end <= n_out, "ascending split points within the outputs");
        kernels.matmul(weight, activations.data(), stride, rows, begin, end, y.mutable_data(),
                       static_cast<size_t>(n_out));
        begin = end;
    }
    return y;
}

Array<float> rms_norm(const Array<float>& x, const Array<float>& w, float eps, const std::string& isa) {
    expect(x.size() == w.size(), "as many weights as values");
    Array<float> out(x.size());
    cpu::kernels(isa.c_str())
        .rms_norm(x.data(), w.data(), static_cast<int>(x.size()), eps, out.mutable_data());
    return out;
}

/// q [queries, head_dim], n_visible [queries], k [cells, head_dim], v [cells, v_dim] -> [queries, v_dim].
/// Keys and values are stored as float16 where f16 is set.
Array<float> attention(const Array<float>& q, const Array<int>& n_visible, const Array<float>& k,
                       const Array<float>& v, float scale, bool f16, const std::string& isa) {
    const cpu::Kernels& kernels = cpu::kernels(isa.c_str());
    expect(q.ndim() == 2 && k.ndim() == 2 && v.ndim() == 2 && n_visible.size() == q.shape(0) &&
               k.shape(0) == v.shape(0) && k.shape(1) == q.shape(1),
           "q [queries, head_dim], n_visible [queries], k [cells, head_dim], v [cells, v_dim]");
    for (ssize_t i = 0; i < n_visible.size(); ++i)
        expect(n_visible.at(i) >= 1 && n_visible.at(i) <= k.shape(0), "1 .. cells visible");
    const int queries = static_cast<int>(q.shape(0)), head_dim = static_cast<int>(q.shape(1)),
              v_dim = static_cast<int>(v.shape(1));
    Buffer<uint16_t> k_half(static_cast<size_t>(k.size())), v_half(static_cast<size_t>(v.size()));
    kernels.store_f16(k.data(), static_cast<int>(k.size()), k_half.data());
    kernels.store_f16(v.data(), static_cast<int>(v.size()), v_half.data());
    Buffer<float> scratch(cpu::attention_scratch(queries, head_dim, v_dim));
    Array<float> out({queries, v_dim});
    cpu::Attention a;
    a.q = q.data(), a.q_stride = static_cast<size_t>(head_dim);
    a.n_visible = n_visible.data(), a.n_queries = queries;
    a.k = f16 ? static_cast<const void*>(k_half.data()) : k.data();
    a.v = f16 ? static_cast<const void*>(v_half.data()) : v.data();
    a.kv_type = f16 ? cpu::KvType::F16 : cpu::KvType::F32;
    a.head_dim = head_dim, a.v_dim = v_dim, a.scale = scale;
    a.out = out.mutable_data(), a.out_stride = static_cast<size_t>(v_dim), a.scratch = scratch.data();
    kernels.attention(a);
    return out;
}

/// s [k_dim, v_dim] -> the state after one token and its output [v_dim].
py::tuple delta_step(const Array<float>& s, const Array<float>& q, const Array<float>& k,
                     const Array<float>& v, float decay, float beta, const std::string& isa) {
    expect(s.ndim() == 2 && q.size() == s.shape(0) && k.size() == s.shape(0) && v.size() == s.shape(1),
           "s [k_dim, v_dim], q and k [k_dim], v [v_dim]");
    Array<float> next({s.shape(0), s.shape(1)}), o(s.shape(1));
    cpu::kernels(isa.c_str())
        .delta_step({s.data(), next.mutable_data(), q.data(), k.data(), v.data(), decay, beta,
                     o.mutable_data(), static_cast<int>(s.shape(0)), static_cast<int>(s.shape(1))});
    return py::make_tuple(next, o);
}

py::tuple exp_sum(const Array<float>& x, float shift, float scale, const std::string& isa) {
    Array<float> out(x.size());
    const float sum = cpu::kernels(isa.c_str())
                          .exp_sum(x.data(), static_cast<int>(x.size()), shift, scale, out.mutable_data());
    return py::make_tuple(out, sum);
}

int argmax(const Array<float>& x, const std::string& isa) {
    expect(x.size() >= 1, "at least one value");
    return cpu::kernels(isa.c_str()).argmax(x.data(), static_cast<int>(x.size()));
}

double measure_read_bandwidth(size_t bytes, int threads, double seconds) {
    return cpu::read_bandwidth(cpu::kernels(), bytes, threads, seconds) / 1e9;
}

}  // namespace

void bind_kernels(py::module_& m) {
    py::module_ k = m.def_submodule(
        "kernels", "The CPU kernels, for inspection and tests only. isa \"\" is the best one here.");
    using namespace py::literals;
    k.def("isa_names", [] {
        std::vector<std::string> names;
        for (const cpu::Kernels* kernels : cpu::kernels_here()) names.emplace_back(kernels->name);
        return names;
    });
    k.def("best", [] { return cpu::kernels().name; });
    k.def("dequantize", dequantize, "type"_a, "blocks"_a, "n"_a);
    k.def("matmul", matmul, "type"_a, "blocks"_a, "x"_a, "isa"_a = "", "splits"_a = std::vector<int>{});
    k.def("rms_norm", rms_norm, "x"_a, "w"_a, "eps"_a, "isa"_a = "");
    k.def("attention", attention, "q"_a, "n_visible"_a, "k"_a, "v"_a, "scale"_a, "f16"_a = false,
          "isa"_a = "");
    k.def("delta_step", delta_step, "s"_a, "q"_a, "k"_a, "v"_a, "decay"_a, "beta"_a, "isa"_a = "");
    k.def("exp_sum", exp_sum, "x"_a, "shift"_a, "scale"_a, "isa"_a = "");
    k.def("argmax", argmax, "x"_a, "isa"_a = "");
    k.def("measure_read_bandwidth", measure_read_bandwidth, "bytes"_a, "threads"_a, "seconds"_a,
          py::call_guard<py::gil_scoped_release>());
}
