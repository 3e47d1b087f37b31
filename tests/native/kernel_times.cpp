#include "device/kernel_times.h"

#include <map>
#include <set>

#include "arms.h"

using namespace strata;
using namespace strata::test;

TEST(kernel_times_add_up_to_the_programs_that_they_are_of) {
    const auto file = micro("micro-qwen35-friendly");
    Arm arm{2, 2, 16, KvType::F16, true, DraftSource::mtp, 3, 0};
    arm.windows = 2;
    const Request request{prompt(40), 30, {}, {}, {}};
    const Outcome plain = run_arm(file, {}, request);
    CHECK(plain.stats.kernels.empty());
    Engine engine(file, options_of(*file, arm));
    set_switches(engine, arm);
    engine.switches().kernel_times = true;
    const Outcome timed = run(*engine.session(), request);
    check_same(plain, timed, arm);
    std::vector<Event> events;
    engine.recorder().drain(events);

    std::map<int, uint64_t> told, took;                // by lane
    std::map<std::pair<int, int>, int> programs, ran;  // by lane and rows
    std::map<int, std::set<std::string>> kernels;
    for (const KernelTally& t : timed.stats.kernels) {
        told[t.lane] += t.ns;
        programs[{t.lane, t.rows}] = t.programs;
        kernels[t.lane].insert(kernel_name(t.kind));
    }
    for (const Event& e : events) {
        const bool runs =
            e.kind == EventKind::run || e.kind == EventKind::prefill_chunk || e.kind == EventKind::draft_step;
        if (runs) ++ran[{e.stage, e.rows <= MAX_WINDOW_ROWS ? e.rows : 0}];
        if (runs || e.kind == EventKind::commit || e.kind == EventKind::undo) took[e.stage] += e.dur_ns;
    }
    for (int lane : {0, 1, static_cast<int>(DRAFT_LANE)}) {
        CHECK(told[lane] > 0);
        CHECK(told[lane] <= took[lane]);
    }
    for (const auto& [place, count] : ran) CHECK_EQ(programs[place], count);
    CHECK(kernels[0].contains("delta") && kernels[0].contains("commit") && kernels[0].contains("embed"));
    CHECK(!kernels[0].contains("head") && kernels[1].contains("head") && kernels[1].contains("pick"));
    CHECK(kernels[DRAFT_LANE].contains("attention") && kernels[DRAFT_LANE].contains("pick"));
    for (const auto& [lane, names] : kernels) {
        int types = 0;  // of weights
        for (const TypeInfo* type : {type_info(0), type_info(1), type_info(8), type_info(12), type_info(14)})
            types += names.contains(type->name);
        CHECK(types > 0);
    }

    // Each request anew, and none once they are not asked for any more.
    const Outcome next = run(*engine.session(), {prompt(5), 1, {}, {}, {}});
    CHECK(!next.stats.kernels.empty());
    for (const KernelTally& t : next.stats.kernels) CHECK(t.programs <= 2);
    engine.switches().kernel_times = false;
    CHECK(run(*engine.session(), {prompt(5), 1, {}, {}, {}}).stats.kernels.empty());
}
