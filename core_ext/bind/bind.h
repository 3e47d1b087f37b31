#pragma once

#include <pybind11/pybind11.h>

/// One function a class or table: each file under bind/ wraps and nothing else. Long calls release the GIL.
void bind_gguf(pybind11::module_& m);
void bind_kernels(pybind11::module_& m);
void bind_events(pybind11::module_& m);
void bind_engine(pybind11::module_& m);
void bind_session(pybind11::module_& m);
