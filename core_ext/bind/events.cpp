#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"
#include "bind/bind.h"
#include "kernels/cpu/kernels.h"
#include "trace/event.h"

namespace py = pybind11;
using strata::Event;

void bind_events(py::module_& m) {
    // The dtype is written out, so that fields carry the enums as plain numbers.
    const auto dtype = [] {
        return py::module_::import("numpy").attr("dtype")(py::dict(
            py::arg("names") =
                std::vector<std::string>{"start_ns", "dur_ns", "window", "kind", "stage", "rows", "a", "b"},
            py::arg("formats") =
                std::vector<std::string>{"<u8", "<u8", "<u4", "u1", "u1", "<u2", "<i4", "<i4"},
            py::arg("offsets") =
                std::vector<size_t>{offsetof(Event, start_ns), offsetof(Event, dur_ns),
                                    offsetof(Event, window), offsetof(Event, kind), offsetof(Event, stage),
                                    offsetof(Event, rows), offsetof(Event, a), offsetof(Event, b)},
            py::arg("itemsize") = sizeof(Event)));
    };
    m.def("event_dtype", dtype);
    m.attr("EVENT_KINDS") = py::dict();
    const char* kinds[] = {
        "none",           "run",           "wait_ready",        "publish",      "commit",      "undo",
        "snapshot",       "prefill_chunk", "draft_step",        "stage_inputs", "launch",      "sync",
        "verdict",        "window",        "draft_token",       "token",        "guess_built", "guess_gated",
        "guess_launched", "guess_kept",    "guess_rolled_back", "guess_late",   "guess_ended", "toggle",
        "throttle",       "request_begin", "request_end",       "error",        "paused",      "miss"};
    static_assert(std::size(kinds) == static_cast<size_t>(strata::EventKind::miss) + 1);
    py::dict table = m.attr("EVENT_KINDS");
    for (size_t i = 0; i < std::size(kinds); ++i) table[kinds[i]] = i;
    m.attr("DRAFT_LANE") = strata::DRAFT_LANE;
    m.attr("HOST_LANE") = strata::HOST_LANE;
    m.attr("FINISHES") = std::vector<std::string>{"", "stop", "length", "context", "cancel", "error"};
    m.attr("FATES") =
        std::vector<std::string>{"fresh", "kept_after_fresh", "kept_after_kept", "prompt", "guess"};
    m.attr("SWITCHES") = std::vector<std::string>{
        "overlap", "pipeline_windows", "draft",      "draft_max",    "draft_min_p", "theta", "short_read",
        "rate",    "force_miss",       "spec_depth", "pipeline_log", "chain_ahead"};
    m.attr("DRAFTS") = std::vector<std::string>{"none", "mtp", "lookup", "replay"};
    m.def("available_memory", []() -> std::optional<uint64_t> {
        const uint64_t bytes = strata::available_memory();
        return bytes == UINT64_MAX ? std::nullopt : std::optional(bytes);
    });
    m.def("cpu_info", [] {
        py::dict info;
        info["cores"] = strata::usable_cores();
        info["numa"] = strata::numa_nodes();
        info["model"] = strata::cpu_model();
        py::list isas;
        for (const char* isa : {"avx512", "avx2", "portable"}) {
            try {
                strata::cpu::kernels(isa);
                isas.append(isa);
            } catch (const strata::Error&) {  // this machine lacks it
            }
        }
        info["isas"] = isas;
        info["best"] = strata::cpu::kernels().name;
        return info;
    });
}
