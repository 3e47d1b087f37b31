#include "decode/session.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "bind/bind.h"
#include "bind/values.h"

namespace py = pybind11;
using namespace strata;

/// One a (lane, rows): they follow one another.
static py::list kernel_dicts(const std::vector<KernelTally>& tallies) {
    py::list all;
    for (size_t i = 0; i < tallies.size();) {
        const KernelTally& first = tallies[i];
        py::dict ns;
        for (; i < tallies.size() && tallies[i].lane == first.lane && tallies[i].rows == first.rows; ++i)
            ns[py::str(kernel_name(tallies[i].kind))] = tallies[i].ns;
        py::dict d;
        d["stage"] = first.lane;
        d["rows"] = first.rows;
        d["programs"] = first.programs;
        d["ns"] = ns;
        all.append(d);
    }
    return all;
}

static py::dict stats_dict(const RequestStats& s) {
    const auto by_position = [](const std::array<int, MAX_WINDOW_ROWS>& counts) {
        return std::vector<int>(counts.begin() + 1, counts.end());
    };
    py::dict d;
    d["prompt_tokens"] = s.prompt_tokens;
    d["cached_tokens"] = s.cached_tokens;
    d["generated"] = s.generated;
    d["windows"] = s.windows;
    d["windows_overlapped"] = s.windows_overlapped;
    d["prompt_windows"] = s.prompt_windows;
    d["chunks"] = s.chunks;
    d["drafted"] = s.drafted;
    d["accepted"] = s.accepted;
    d["drafted_per_position"] = by_position(s.drafted_at);
    d["accepted_per_position"] = by_position(s.accepted_at);
    d["prefill_rows"] = s.prefill_rows;
    d["prefill_ns"] = s.prefill_ns;
    d["first_token_ns"] = s.first_token_ns;
    d["begin_ns"] = s.begin_ns;
    d["end_ns"] = s.end_ns;
    d["decode_ns"] = s.generated ? s.last_token_ns - s.begin_ns - s.first_token_ns : 0;
    d["window_ns"] = s.window_ns;
    d["throttled_ns"] = s.held_ns;
    d["windows_by_class"] = s.windows_by_class;
    d["tokens_by_class"] = s.tokens_by_class;
    d["window_ns_by_class"] = s.window_ns_by_class;
    d["undone"] = s.undone;
    py::dict g;
    g["built"] = s.guesses.built;
    g["gated"] = s.guesses.gated;
    g["late"] = s.guesses.late;
    g["launched"] = s.guesses.launched;
    g["kept"] = s.guesses.kept;
    g["rolled_back"] = s.guesses.rolled_back;
    g["ended"] = s.guesses.ended;
    g["bonus_wrong"] = s.guesses.bonus_wrong;
    g["draft_wrong"] = s.guesses.drafts_wrong;
    g["forced"] = s.guesses.forced;
    g["second_choice_right"] = s.guesses.second_choice_right;
    d["guesses"] = g;
    d["kept_at_depth"] = s.guesses.kept_at_depth;
    d["drafting_stopped"] = s.drafting_stopped;
    d["kernels"] = kernel_dicts(s.kernels);
    return d;
}

void bind_session(py::module_& m) {
    py::class_<Sampling>(m, "Sampling")
        .def(py::init([](float temperature, int top_k, float top_p, float min_p, float repeat_penalty,
                         uint64_t seed) {
                 return Sampling{temperature, top_k, top_p, min_p, repeat_penalty, seed};
             }),
             py::arg("temperature") = 0.0f, py::arg("top_k") = 0, py::arg("top_p") = 1.0f,
             py::arg("min_p") = 0.0f, py::arg("repeat_penalty") = 1.0f, py::arg("seed") = 0)
        .def_readwrite("temperature", &Sampling::temperature)
        .def_readwrite("top_k", &Sampling::top_k)
        .def_readwrite("top_p", &Sampling::top_p)
        .def_readwrite("min_p", &Sampling::min_p)
        .def_readwrite("repeat_penalty", &Sampling::repeat_penalty)
        .def_readwrite("seed", &Sampling::seed);

    const auto released = py::call_guard<py::gil_scoped_release>();
    py::class_<Session, std::shared_ptr<Session>>(m, "Session")
        .def(
            "start",
            [](Session& session, std::vector<int32_t> tokens, int max_tokens, const Sampling& sampling,
               std::vector<int32_t> end_tokens, std::vector<int32_t> replay) {
                session.start(
                    {std::move(tokens), max_tokens, sampling, std::move(end_tokens), std::move(replay)});
            },
            py::arg("tokens"), py::arg("max_tokens"), py::arg("sampling"), py::arg("end_tokens"),
            py::arg("replay") = std::vector<int32_t>())
        .def("read", &Session::read)
        .def("wait", &Session::wait, py::arg("timeout_s"), released)
        .def("cancel", &Session::cancel)
        .def_property_readonly("finish", [](const Session& s) { return finish_name(s.finish()); })
        .def_property_readonly("error", &Session::error)
        .def_property_readonly("running", [](const Session& s) { return s.finish() == Finish::running; })
        .def_property_readonly("position", &Session::position)
        .def_property_readonly("tokens", &Session::tokens)
        .def("stats", [](const Session& s) { return stats_dict(s.stats()); })
        .def("fingerprint", [](const Session& s) {
            py::dict d;
            d["length"] = s.position();
            d["layers"] = s.fingerprint();
            if (const auto draft = s.draft_fingerprint()) {
                d["draft_length"] = draft->first;
                d["draft"] = draft->second;
            }
            return d;
        });
}
