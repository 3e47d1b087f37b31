#include <pybind11/pybind11.h>

#include "base/clock.h"
#include "base/error.h"
#include "bind/bind.h"

namespace py = pybind11;

PYBIND11_MODULE(_core, m) {
    m.doc() = "The native engine of strata-tui (see _core.pyi).";
    py::register_exception<strata::Error>(m, "Error");
    m.def("steady_ns", &strata::now_ns);
    bind_gguf(m);
    bind_kernels(m);
    bind_events(m);
    bind_engine(m);
    bind_session(m);
}
