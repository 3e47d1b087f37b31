#include <thread>

#include "arms.h"

/// The draft layer by itself: chains, and what each of them may give.
namespace strata::test {

struct Chains {
    explicit Chains(const Arm& arm)
        : file(micro("micro-qwen35")),
          engine(file, options_of(*file, arm)),
          mtp(*engine.split().mtp),
          line(TOKENS) {
        const std::vector<int32_t> tokens = prompt(TOKENS);
        engine.eval(tokens);  // hidden rows of all positions are there
        std::copy(tokens.begin(), tokens.end(), line.tokens.data());
        mtp.set_sampling({}, &line);
    }
    ~Chains() {
        mtp.cut();
        while (!mtp.idle()) std::this_thread::yield();
        mtp.set_sampling({}, nullptr);
    }

    void begin(int length, int outputs) {
        mtp.forget_from(length - 1);
        mtp.begin_chain(length, {}, 0, ++engine.split().last_window);
        mtp.want(outputs);
    }
    void wait(int outputs) {
        while (mtp.count() < outputs) {
            mtp.pump();
            std::this_thread::yield();
        }
    }
    std::vector<int32_t> outputs(int n) {
        wait(n);
        std::vector<int32_t> tokens;
        for (int i = 0; i < n; ++i) tokens.push_back(mtp.output(i).token);
        return tokens;
    }

    static constexpr int TOKENS = 24;
    std::shared_ptr<const GgufFile> file;
    Engine engine;
    Mtp& mtp;
    TokenLine line;
};

TEST(mtp_an_old_chain_gives_a_new_one_nothing) {
    Arm arm;
    arm.pace.kind = PaceSpec::Kind::even;
    arm.pace.lasts_ns[static_cast<int>(ProgramKind::draft)] = 5'000'000;
    Chains chains(arm);
    chains.begin(8, 4);
    const auto alone = chains.outputs(4);
    for (int there = 1; there < 4; ++there) {
        chains.begin(16, 6);
        chains.wait(there);  // the step behind it is held
        CHECK(chains.outputs(1) != std::vector{alone[0]});
        chains.begin(8, 4);
        CHECK_EQ(chains.mtp.count(), 0);
        CHECK(!chains.mtp.exhausted());
        CHECK(chains.outputs(4) == alone);
        CHECK_EQ(chains.mtp.count(), 4);
    }
}

TEST(mtp_a_cut_chain_gives_nothing_more) {
    Arm arm;
    arm.pace.kind = PaceSpec::Kind::even;
    arm.pace.lasts_ns[static_cast<int>(ProgramKind::draft)] = 2'000'000;
    Chains chains(arm);
    chains.begin(16, 6);
    chains.wait(2);
    chains.mtp.cut();
    CHECK_EQ(chains.mtp.count(), 0);
    while (!chains.mtp.idle()) std::this_thread::yield();
    CHECK_EQ(chains.mtp.count(), 0);
    CHECK_EQ(chains.mtp.next_due_ns(), 0u);
}

/// Rows that lag behind kept guesses would be caught up at once, in front of the next fresh window.
TEST(mtp_follows_the_verdicts_whatever_is_kept) {
    const auto file = micro("micro-qwen35-friendly");
    const Request request = replayed(file, {prompt(40), 120, {}, {}, {}});
    for (const DraftSource draft : {DraftSource::mtp, DraftSource::replay}) {
        Arm arm{3, 1, 64, KvType::F16, true, draft, 3, 64};
        arm.windows = 3;
        // So that the drafts of a guess are there before the window ahead has its verdict.
        arm.pace.kind = PaceSpec::Kind::even;
        arm.pace.lasts_ns[static_cast<int>(ProgramKind::forward)] = 3'000'000;
        Engine engine(file, options_of(*file, arm));
        set_switches(engine, arm);
        const Outcome outcome = run(*engine.session(), request);
        CHECK(draft == DraftSource::mtp || outcome.stats.guesses.kept > 0);
        CHECK(outcome.draft.has_value() && outcome.draft->first == int(outcome.tokens.size()) - 1);
        std::vector<Event> events;
        engine.recorder().drain(events);
        uint64_t first_step = UINT64_MAX;
        for (const Event& e : events)
            if (e.kind == EventKind::draft_step && e.a > 0) first_step = std::min(first_step, e.start_ns);
        CHECK(first_step < UINT64_MAX);
        for (const Event& e : events)
            if (e.kind == EventKind::draft_step && e.start_ns > first_step)
                CHECK(e.rows <= 2 * (arm.draft_max + 1));
    }
}

TEST(mtp_draft_layer_and_last_stage_run_side_by_side) {
    const auto file = micro("micro-qwen35-friendly");
    Engine engine(file, options_of(*file, {}));
    const int n = 60, cell = 20, rows = 8;
    const std::vector<int32_t> tokens = prompt(n);
    engine.eval(tokens);  // cells and hidden rows of all positions are there
    TokenLine line(n);
    std::copy(tokens.begin(), tokens.end(), line.tokens.data());
    Stage& stage = engine.split().last();
    Mtp& mtp = *engine.split().mtp;
    mtp.set_sampling({}, &line);
    ForwardInputs& inputs = stage.forward_inputs(0);
    inputs = {};
    inputs.window = ++engine.split().last_window;
    inputs.rows = rows;
    inputs.position = n - rows;  // its hidden rows are others than the one that the draft layer reads
    std::copy_n(tokens.end() - rows, rows, inputs.tokens.begin());
    inputs.all_logits = true;
    const int64_t n_vocab = engine.model().dims().n_vocab;
    const auto forward = [&](auto meanwhile) {
        const Ticket ticket = stage.device().submit(stage.forward_program(0));
        while (stage.device().finished() < ticket) meanwhile();
        return std::vector<float>(stage.logits(0), stage.logits(0) + rows * n_vocab);
    };
    const auto draft = [&] {
        const float* logits = mtp.eval_cell(cell);
        return std::vector<float>(logits, logits + n_vocab);
    };
    const auto alone = forward([] { std::this_thread::yield(); });
    const auto draft_alone = draft();
    int beside = 0;
    for (int round = 0; round < 600; ++round)
        CHECK(forward([&] {
                  CHECK(draft() == draft_alone);
                  ++beside;
              }) == alone);
    CHECK(beside > 100);
    mtp.set_sampling({}, nullptr);
    mtp.forget_from(0);
}

}  // namespace strata::test
