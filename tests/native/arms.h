#pragma once

#include <optional>
#include <string>

#include "check.h"
#include "engine.h"

/// Arms of the native tests: a micro model on some placement with some switches, and what a request gave.
namespace strata::test {

inline const std::string DATA = STRATA_TEST_DATA;

inline std::shared_ptr<const GgufFile> micro(const char* name) {
    return GgufFile::open(DATA + "/oracles/" + name + ".gguf");
}

struct Arm {
    int stages = 1;
    int threads = 1;
    int chunk = 64;
    KvType kv = KvType::F16;
    bool overlap = false;
    DraftSource draft = DraftSource::none;
    int draft_max = 4;
    int short_read = 64;
    int windows = 0;  // in flight
    float theta = 0;
    int force_miss = 0;
    int spec_depth = 32;
    bool chain_ahead = true;
    PaceSpec pace{};
};

inline EngineOptions options_of(const GgufFile& file, const Arm& arm) {
    EngineOptions o;
    const int n_layers =
        static_cast<int>(
            file.integer(std::string(file.text("general.architecture")) + ".block_count", 1, 999)) -
        static_cast<int>(file.integer_or(
            std::string(file.text("general.architecture")) + ".nextn_predict_layers", 0, 0, 9));
    for (int s = 1; s < arm.stages; ++s) o.split.push_back(n_layers * s / arm.stages);
    o.devices.assign(arm.stages, CpuSpec{arm.threads, {}, arm.pace});
    o.pipeline_max = arm.windows;
    o.context = 256;
    o.chunk = arm.chunk;
    o.kv_type = arm.kv;
    o.event_capacity = 1 << 14;
    return o;
}

inline void set_switches(Engine& engine, const Arm& arm) {
    engine.switches().overlap = arm.overlap;
    engine.switches().draft = arm.draft;
    engine.switches().draft_max = arm.draft_max;
    engine.switches().short_read = arm.short_read;
    engine.switches().pipeline_windows = arm.windows;
    engine.switches().theta = arm.theta;
    engine.switches().force_miss = arm.force_miss;
    engine.switches().spec_depth = arm.spec_depth;
    engine.switches().chain_ahead = arm.chain_ahead;
    engine.switches().keep_drafting = true;
}

inline std::vector<int32_t> prompt(int n) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < n; ++i) tokens.push_back((i * i + 3 * i) % 97 + 5);
    return tokens;
}

/// Text and state of a request.
struct Outcome {
    std::vector<int32_t> tokens;
    std::vector<uint64_t> state;
    std::optional<std::pair<int, uint64_t>> draft;
    Finish finish = Finish::running;
    RequestStats stats;
};

inline Outcome run(Session& session, Request request) {
    session.start(std::move(request));
    while (session.finish() == Finish::running) session.wait(10);
    if (session.finish() == Finish::error) throw std::runtime_error(session.error());
    return {session.tokens(), session.fingerprint(), session.draft_fingerprint(), session.finish(),
            session.stats()};
}

inline Outcome run_arm(const std::shared_ptr<const GgufFile>& file, const Arm& arm, const Request& request) {
    Engine engine(file, options_of(*file, arm));
    set_switches(engine, arm);
    return run(*engine.session(), request);
}

inline std::string name(const Arm& a) {
    return "stages " + std::to_string(a.stages) + " threads " + std::to_string(a.threads) + " chunk " +
           std::to_string(a.chunk) + " overlap " + std::to_string(a.overlap) + " draft " +
           std::to_string(static_cast<int>(a.draft)) + " max " + std::to_string(a.draft_max) + " short " +
           std::to_string(a.short_read) + " windows " + std::to_string(a.windows) + " theta " +
           std::to_string(a.theta) + " force-miss " + std::to_string(a.force_miss) + " depth " +
           std::to_string(a.spec_depth) + " chain-ahead " + std::to_string(a.chain_ahead) + " pace " +
           a.pace.label();
}

inline void check_same(const Outcome& expected, const Outcome& got, const Arm& arm) {
    if (got.tokens != expected.tokens) test::fail(__FILE__, __LINE__, "text differs: " + name(arm));
    if (got.state != expected.state) test::fail(__FILE__, __LINE__, "state differs: " + name(arm));
    if (got.finish != expected.finish) test::fail(__FILE__, __LINE__, "finish differs: " + name(arm));
}

/// A plain run of the same request, for `replay` drafts, which keep as many guesses as wanted on any model.
inline Request replayed(const std::shared_ptr<const GgufFile>& file, Request request) {
    const Outcome plain = run_arm(file, {}, request);
    request.replay.assign(plain.tokens.begin() + request.tokens.size(), plain.tokens.end());
    return request;
}

inline void add(GuessStats& sum, const GuessStats& g) {
    CHECK_EQ(g.built, g.gated + g.late + g.launched);
    CHECK_EQ(g.launched, g.kept + g.rolled_back + g.ended);
    sum.built += g.built, sum.gated += g.gated, sum.late += g.late, sum.launched += g.launched;
    sum.kept += g.kept, sum.rolled_back += g.rolled_back, sum.ended += g.ended, sum.forced += g.forced;
    for (size_t d = 0; d < sum.kept_at_depth.size(); ++d) sum.kept_at_depth[d] += g.kept_at_depth[d];
}

inline const Sampling SAMPLED{0.8f, 0, 0.95f, 0, 1.1f, 7};

}  // namespace strata::test
