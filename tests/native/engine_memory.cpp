#include "arms.h"

using namespace strata;
using namespace strata::test;

namespace {

/// All that an engine has allocated.
uint64_t taken(Engine& engine) {
    uint64_t bytes = 0;
    for (const auto& stage : engine.split().stages)
        bytes += stage->kv_bytes() + stage->state_bytes() + stage->buffer_bytes();
    if (const auto& mtp = engine.split().mtp) bytes += mtp->kv_bytes() + mtp->buffer_bytes();
    return bytes;
}

}  // namespace

TEST(engine_takes_what_there_is_and_not_a_byte_more) {
    for (const char* model : {"micro-llama", "micro-qwen35-friendly"})
        for (int stages : {1, 3}) {
            const auto file = micro(model);
            EngineOptions options = options_of(*file, {stages});
            Engine free_engine(file, options);
            options.memory = taken(free_engine);
            Engine exact(file, options);
            CHECK_EQ(taken(exact), options.memory);
            --options.memory;
            CHECK_THROWS(Engine(file, options), "of buffers at --chunk 64), ");
        }
}

TEST(engine_refuses_a_context_before_it_is_allocated) {
    const auto file = micro("micro-qwen35-friendly");
    EngineOptions options = options_of(*file, {});
    options.context = 1 << 30;
    options.memory = uint64_t{64} << 20;
    // One attention layer of the trunk: 2 heads of 16, K and V of 2 bytes. The draft layer: as much, and hidden
    // rows of 64 floats. Three states of 4 heads [16, 16] and 3 inputs of 128 channels, twice.
    CHECK_THROWS(
        Engine(file, options),
        "[engine] needs 524288 MiB of memory beside the mapped model (524288 MiB for --ctx 1073741824, "
        "0 MiB of recurrent states), 64 MiB are available");
}
