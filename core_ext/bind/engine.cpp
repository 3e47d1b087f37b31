#include "engine.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/error.h"
#include "bind/bind.h"
#include "bind/gguf.h"
#include "bind/values.h"

namespace py = pybind11;
using namespace strata;

namespace strata {

std::string draft_name(DraftSource source, float quality) {
    switch (source) {
        case DraftSource::none:
            return "none";
        case DraftSource::mtp:
            return "mtp";
        case DraftSource::lookup:
            return "lookup";
        case DraftSource::replay:
            break;
    }
    std::string text = std::to_string(quality);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text += '0';
    return "replay:" + text;
}

std::pair<DraftSource, float> parse_draft(const std::string& text) {
    if (text == "none") return {DraftSource::none, 1};
    if (text == "mtp") return {DraftSource::mtp, 1};
    if (text == "lookup") return {DraftSource::lookup, 1};
    if (text.rfind("replay:", 0) == 0) {
        float quality = -1;
        const char *begin = text.data() + 7, *end = text.data() + text.size();
        const auto [stop, status] = std::from_chars(begin, end, quality);
        if (status == std::errc() && stop == end && quality >= 0 && quality <= 1)
            return {DraftSource::replay, quality};
    }
    throw Error("[switch] draft should be mtp, lookup, none or replay:Q with Q from 0 to 1, got " + text);
}

}  // namespace strata

/// What Python holds: the engine until close().
struct EngineHandle {
    std::shared_ptr<const GgufFile> file;
    std::unique_ptr<Engine> engine;
    std::shared_ptr<Session> session;
    std::vector<Event> drained;
    EngineOptions options;

    Engine& get() const {
        if (!engine) throw Error("[engine] it has been closed");
        return *engine;
    }
};

/// A live switch as a Python attribute, checked where it is set.
template <typename T>
static void bind_switch(py::class_<Engine>& c, const char* name, std::atomic<T> Switches::* field, double low,
                        double high) {
    c.def_property(
        name, [field](Engine& e) { return (e.switches().*field).load(); },
        [name, field, low, high](Engine& e, T value) {
            const double number = static_cast<double>(value);
            if (!(number >= low && number <= high))
                throw Error("[switch] " + std::string(name) + " should be from " +
                            py::str(py::float_(low)).cast<std::string>() + " to " +
                            py::str(py::float_(high)).cast<std::string>() + ", got " +
                            py::str(py::float_(number)).cast<std::string>());
            (e.switches().*field).store(value);
        });
}

static py::array_t<float> matrix(std::vector<float>&& values, py::ssize_t columns) {
    const py::ssize_t rows = static_cast<py::ssize_t>(values.size()) / columns;
    auto* owned = new std::vector<float>(std::move(values));
    py::capsule free(owned, [](void* p) { delete static_cast<std::vector<float>*>(p); });
    return py::array_t<float>({rows, columns}, owned->data(), free);
}

static uint64_t pace_ns(double ms) {
    if (!(ms >= 0 && ms < 1e9))
        throw Error("[device] expected milliseconds, got " + py::str(py::float_(ms)).cast<std::string>());
    return static_cast<uint64_t>(std::llround(ms * 1e6));
}

static PaceSpec pace_spec(const std::string& kind, const std::map<std::string, double>& times_ms,
                          uint64_t seed, const std::vector<std::string>& only, float chance, double max_ms) {
    PaceSpec pace;
    if (kind == "even") {
        pace.kind = PaceSpec::Kind::even;
        for (const auto& [name, ms] : times_ms)
            pace.lasts_ns[static_cast<int>(program_kind(name))] = pace_ns(ms);
    } else if (kind == "delayed") {
        pace.kind = PaceSpec::Kind::delayed;
        pace.seed = seed;
        if (!only.empty()) pace.kinds = 0;
        for (const auto& name : only) pace.kinds |= 1u << static_cast<int>(program_kind(name));
        pace.chance = chance;
        pace.max_ns = pace_ns(max_ms);
    } else if (kind != "cpu") {
        throw Error("[device] expected cpu, even or delayed, got " + kind);
    }
    return pace;
}

/// A stage of a described rig: tables by rows, hand-offs by how the rows come.
static PaceSpec paced_spec(const std::string& name, const std::vector<double>& run_ms,
                           const std::vector<double>& chunk_ms, double run_ms_per_1k, int position_offset,
                           const std::map<std::string, double>& hand_off_ms,
                           const std::map<std::string, double>& times_ms, double jitter, uint64_t seed) {
    PaceSpec pace = pace_spec("even", times_ms, seed, {}, 0, 0);
    pace.kind = PaceSpec::Kind::paced;
    pace.name = name;
    pace.seed = seed;
    for (double ms : run_ms) pace.run_ns.push_back(pace_ns(ms));
    for (double ms : chunk_ms) pace.chunk_ns.push_back(pace_ns(ms));
    pace.run_ns_per_position = run_ms_per_1k * 1e3;
    pace.position_offset = position_offset;
    pace.jitter = static_cast<float>(jitter);
    const std::array<const char*, N_ARRIVALS> arrivals{"launch", "serial", "overlapped", "polled"};
    for (const auto& [arrival, ms] : hand_off_ms) {
        const auto known = std::find(arrivals.begin(), arrivals.end(), arrival);
        if (known == arrivals.end())
            throw Error("[device] a hand-off should be launch, serial, overlapped or polled, got " + arrival);
        pace.arrival_ns[known - arrivals.begin()] = pace_ns(ms);
    }
    return pace;
}

static const char* device_kind(const CpuSpec& spec) {
    switch (spec.pace.kind) {
        case PaceSpec::Kind::even:
            return "even";
        case PaceSpec::Kind::delayed:
            return "delayed";
        case PaceSpec::Kind::paced:
            return "paced";
        case PaceSpec::Kind::none:
            break;
    }
    return "cpu";
}

static void bind_options(py::module_& m) {
    py::class_<CpuSpec>(m, "DeviceSpec")
        .def(py::init([](const std::string& kind, int threads, std::vector<int> cores,
                         const std::map<std::string, double>& times_ms, uint64_t seed,
                         const std::vector<std::string>& only, float chance, double max_ms) {
                 return CpuSpec{threads, std::move(cores),
                                pace_spec(kind, times_ms, seed, only, chance, max_ms)};
             }),
             py::arg("kind") = "cpu", py::arg("threads") = 1, py::arg("cores") = std::vector<int>(),
             py::kw_only(), py::arg("times_ms") = std::map<std::string, double>(), py::arg("seed") = 0,
             py::arg("only") = std::vector<std::string>(), py::arg("chance") = PaceSpec().chance,
             py::arg("max_ms") = PaceSpec().max_ns * 1e-6)
        .def_static(
            "paced",
            [](const std::string& name, int threads, std::vector<int> cores,
               const std::vector<double>& run_ms, const std::vector<double>& chunk_ms, double run_ms_per_1k,
               int position_offset, const std::map<std::string, double>& hand_off_ms,
               const std::map<std::string, double>& times_ms, double jitter, uint64_t seed) {
                return CpuSpec{threads, std::move(cores),
                               paced_spec(name, run_ms, chunk_ms, run_ms_per_1k, position_offset, hand_off_ms,
                                          times_ms, jitter, seed)};
            },
            py::arg("name"), py::arg("threads"), py::arg("cores"), py::kw_only(), py::arg("run_ms"),
            py::arg("chunk_ms"), py::arg("run_ms_per_1k"), py::arg("position_offset"), py::arg("hand_off_ms"),
            py::arg("times_ms"), py::arg("jitter"), py::arg("seed"))
        .def_property_readonly("kind", device_kind)
        .def_readwrite("threads", &CpuSpec::threads)
        .def_readwrite("cores", &CpuSpec::cores);

    py::class_<EngineOptions>(m, "EngineOptions")
        .def(py::init<>())
        .def_readwrite("split", &EngineOptions::split)
        .def_readwrite("devices", &EngineOptions::devices)
        .def_readwrite("context", &EngineOptions::context)
        .def_property(
            "kv_type", [](const EngineOptions& o) { return o.kv_type == KvType::F16 ? "f16" : "f32"; },
            [](EngineOptions& o, const std::string& type) {
                if (type != "f16" && type != "f32")
                    throw Error("[engine] --kv should be f32 or f16, got " + type);
                o.kv_type = type == "f16" ? KvType::F16 : KvType::F32;
            })
        .def_readwrite("chunk", &EngineOptions::chunk)
        .def_readwrite("pipeline_max", &EngineOptions::pipeline_max)
        .def_readwrite("window_memory", &EngineOptions::window_memory)
        .def_readwrite("memory", &EngineOptions::memory)
        .def_readwrite("watchdog_s", &EngineOptions::watchdog_s)
        .def_readwrite("isa", &EngineOptions::isa)
        .def_readwrite("events", &EngineOptions::events)
        .def_readwrite("event_capacity", &EngineOptions::event_capacity);
}

static py::list stage_infos(Engine& engine) {
    py::list infos;
    const py::object type = py::module_::import("types").attr("SimpleNamespace");
    for (auto& stage : engine.split().stages) {
        std::vector<std::string> kinds;
        for (int l = stage->shape().first_layer; l <= stage->shape().last_layer; ++l)
            kinds.push_back(engine.model().kind(l) == LayerKind::delta ? "gdn" : "attention");
        infos.append(type(
            py::arg("index") = stage->shape().index, py::arg("device") = stage->device().describe(),
            py::arg("first_layer") = stage->shape().first_layer,
            py::arg("last_layer") = stage->shape().last_layer, py::arg("layers") = kinds,
            py::arg("weight_bytes") = stage->weight_bytes(), py::arg("kv_bytes") = stage->kv_bytes(),
            py::arg("state_bytes") = stage->state_bytes(), py::arg("buffer_bytes") = stage->buffer_bytes(),
            py::arg("pinned") = stage->device().pinned(), py::arg("slots") = stage->shape().n_slots,
            py::arg("states") = stage->shape().n_states, py::arg("snapshot_bytes") = stage->snapshot_bytes(),
            py::arg("slot_bytes") = stage->slot_bytes(), py::arg("isa") = engine.kernels().name,
            py::arg("numerics") = engine.kernels().numerics));
    }
    return infos;
}

/// What each paced device made of each kind of program that it had.
static py::list pace_kept(Engine& engine, bool anew) {
    py::list all;
    const auto add = [&all, anew](int stage, Pace* pace) {
        for (int i = 0; pace && i < N_PROGRAM_KINDS; ++i) {
            const auto kind = static_cast<ProgramKind>(i);
            const PaceKept kept = pace->kept(kind);
            if (!kept.programs) continue;
            py::dict d;
            d["stage"] = stage;
            d["kind"] = program_name(kind);
            d["programs"] = kept.programs;
            d["held_ns"] = kept.held_ns;
            d["overruns"] = kept.overruns;
            d["over_ns"] = kept.over_ns;
            d["worst_over_ns"] = kept.worst_over_ns;
            d["worst_late_ns"] = kept.worst_late_ns;
            d["late"] = kept.late;
            all.append(d);
        }
        if (pace && anew) pace->count_anew();
    };
    for (auto& stage : engine.split().stages) add(stage->shape().index, stage->device().pace());
    if (engine.split().mtp) add(DRAFT_LANE, engine.split().mtp->device().pace());
    return all;
}

static void bind_switches(py::module_& m) {
    // The switches are the engine's: the handle passes the engine itself, typed as Switches.
    py::class_<Engine> c(m, "Switches");
    bind_switch(c, "overlap", &Switches::overlap, 0, 1);
    bind_switch(c, "pipeline_windows", &Switches::pipeline_windows, 0, 32);
    bind_switch(c, "draft_max", &Switches::draft_max, 0, MAX_WINDOW_ROWS - 1);
    bind_switch(c, "draft_min_p", &Switches::draft_min_p, 0, 1);
    bind_switch(c, "theta", &Switches::theta, 0, 1e6);
    bind_switch(c, "short_read", &Switches::short_read, 0, 1 << 20);
    bind_switch(c, "rate", &Switches::rate, 0, 1e6);
    bind_switch(c, "force_miss", &Switches::force_miss, 0, 1 << 30);
    bind_switch(c, "spec_depth", &Switches::spec_depth, 0, 32);
    bind_switch(c, "chain_ahead", &Switches::chain_ahead, 0, 1);
    bind_switch(c, "kernel_times", &Switches::kernel_times, 0, 1);
    bind_switch(c, "keep_drafting", &Switches::keep_drafting, 0, 1);
    c.def_property(
        "draft", [](Engine& e) { return draft_name(e.switches().draft, e.switches().replay_quality); },
        [](Engine& e, const std::string& text) {
            const auto [source, quality] = parse_draft(text);
            e.switches().replay_quality = quality;
            e.switches().draft = source;
            ++e.switches().draft_asked;
        });
    c.def_property(
        "paused", [](Engine& e) { return e.switches().paused.load(); },
        [](Engine& e, bool paused) { e.switches().paused.store(paused); });
    c.def("step", [](Engine& e) { ++e.switches().steps; });
    c.def("notices", [](Engine& e) { return e.notices().take(); });
}

void bind_engine(py::module_& m) {
    bind_options(m);
    bind_switches(m);
    const auto released = py::call_guard<py::gil_scoped_release>();
    py::class_<EngineHandle>(m, "Engine")
        .def(py::init([](std::shared_ptr<ModelFileHandle> model, const EngineOptions& options,
                         std::shared_ptr<ModelFileHandle> draft) {
                 auto handle = std::make_unique<EngineHandle>();
                 handle->file = model->file;
                 handle->options = options;
                 py::gil_scoped_release release;
                 handle->engine =
                     std::make_unique<Engine>(model->file, options, draft ? draft->file : nullptr);
                 return handle;
             }),
             py::arg("model"), py::arg("options"), py::arg("draft") = nullptr)
        .def_property_readonly("stages", [](EngineHandle& h) { return stage_infos(h.get()); })
        .def_property_readonly("emulated",
                               [](EngineHandle& h) {
                                   const auto& devices = h.get().options().devices;
                                   return std::any_of(
                                       devices.begin(), devices.end(),
                                       [](const CpuSpec& spec) { return spec.pace.emulated(); });
                               })
        .def(
            "pace_kept", [](EngineHandle& h, bool anew) { return pace_kept(h.get(), anew); },
            py::arg("anew") = false)
        .def_property_readonly("n_layers", [](EngineHandle& h) { return h.get().model().dims().n_layers; })
        .def_property_readonly("n_vocab", [](EngineHandle& h) { return h.get().model().dims().n_vocab; })
        .def_property_readonly("n_embd", [](EngineHandle& h) { return h.get().model().dims().n_embd; })
        .def_property_readonly("pipeline_max", [](EngineHandle& h) { return h.get().pipeline_max(); })
        .def_property_readonly("context", [](EngineHandle& h) { return h.get().options().context; })
        .def_property_readonly("has_draft_layer",
                               [](EngineHandle& h) { return h.get().model().has_draft_layer(); })
        .def_property_readonly("recurrent",
                               [](EngineHandle& h) { return h.get().model().dims().delta.n_v_heads > 0; })
        .def_property_readonly("draft_bytes",
                               [](EngineHandle& h) -> uint64_t {
                                   Mtp* mtp = h.get().split().mtp.get();
                                   return mtp ? mtp->kv_bytes() + mtp->buffer_bytes() : 0;
                               })
        .def_property_readonly(
            "switches", [](EngineHandle& h) -> Engine& { return h.get(); },
            py::return_value_policy::reference_internal)
        .def("session",
             [](EngineHandle& h) {
                 Engine& engine = h.get();
                 py::gil_scoped_release release;
                 return h.session = engine.session();
             })
        .def("in_force",
             [](EngineHandle& h) {
                 const SwitchValues v = h.session ? h.session->in_force() : h.get().switches().values();
                 py::dict d;
                 d["overlap"] = v.overlap;
                 d["pipeline_windows"] = v.pipeline_windows;
                 d["draft"] = draft_name(v.draft, v.replay_quality);
                 d["draft_max"] = v.draft_max;
                 d["draft_min_p"] = std::round(v.draft_min_p * 1e6) / 1e6;
                 d["theta"] = std::round(v.theta * 1e6) / 1e6;
                 d["short_read"] = v.short_read;
                 d["rate"] = v.rate;
                 d["force_miss"] = v.force_miss;
                 d["spec_depth"] = v.spec_depth;
                 d["chain_ahead"] = v.chain_ahead;
                 return d;
             })
        .def("drain_events",
             [](EngineHandle& h) {
                 h.drained.clear();
                 h.get().recorder().drain(h.drained);
                 py::dtype dtype = py::module_::import("strata_tui._core").attr("event_dtype")();
                 return py::array(dtype, {h.drained.size()}, {sizeof(Event)}, h.drained.data());  // a copy
             })
        .def_property_readonly("dropped_events", [](EngineHandle& h) { return h.get().recorder().dropped(); })
        .def_property(
            "tracing", [](EngineHandle& h) { return h.get().recorder().on(); },
            [](EngineHandle& h, bool on) { h.get().recorder().set_on(on); })
        .def(
            "eval",
            [](EngineHandle& h, const std::vector<int32_t>& tokens) {
                EvalResult result;
                Engine& engine = h.get();
                {
                    py::gil_scoped_release release;
                    result = engine.eval(tokens);
                }
                py::dict d;
                const Dims& dims = engine.model().dims();
                d["logits"] = matrix(std::move(result.logits), dims.n_vocab);
                d["hidden"] = matrix(std::move(result.hidden), dims.n_embd);
                if (engine.model().has_draft_layer())
                    d["nextn_logits"] = matrix(std::move(result.nextn_logits), dims.n_vocab);
                return d;
            },
            py::arg("tokens"))
        .def("inject_error",
             [](EngineHandle& h, int stage, int window) {
                 Split& split = h.get().split();
                 if (stage == DRAFT_LANE && split.mtp) return split.mtp->inject_error();
                 if (stage < 0 || stage >= static_cast<int>(split.stages.size()))
                     throw Error("[engine] no stage " + std::to_string(stage));
                 split.stages[stage]->inject_error(window);
             })
        .def("inject_stall",
             [](EngineHandle& h, int stage) {
                 auto& stages = h.get().split().stages;
                 if (stage < 0 || stage >= static_cast<int>(stages.size()))
                     throw Error("[engine] no stage " + std::to_string(stage));
                 stages[stage]->inject_stall();
             })
        .def("close", [](EngineHandle& h) {
            py::gil_scoped_release release;
            h.session.reset();
            h.engine.reset();
        });
    (void)released;
}
