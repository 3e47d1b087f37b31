#pragma once

#include <memory>
#include <string>
#include <vector>

#include "decode/session.h"

namespace strata {

struct EngineOptions {
    std::vector<int> split;        // first layer of each later stage
    std::vector<CpuSpec> devices;  // one a stage
    int context = 4096;
    KvType kv_type = KvType::F16;
    int chunk = 512;       // rows of a prompt read at a time
    int pipeline_max = 0;  // windows in flight allocated, at most one a stage
    // What they may take, snapshots, hand-offs and the slots of chunks included; 0: what is available once
    // all else is there.
    uint64_t window_memory = 0;
    // What all of it may take beside the mapped model; 0: what is available.
    uint64_t memory = 0;
    double watchdog_s = 25;  // nothing has moved for so long: the request ends with an error
    std::string isa;         // "": the best here
    bool events = true;
    size_t event_capacity = 1 << 15;  // a lane
};

struct EvalResult {
    std::vector<float> logits;        // [n, n_vocab]
    std::vector<float> hidden;        // [n, n_embd], after the output norm
    std::vector<float> nextn_logits;  // [n - 1, n_vocab]; empty without a draft layer
};

/// A model placed on stages. One session at a time.
class Engine {
  public:
    /// Throws Error: options that don't fit the model or the machine, a model that can't be run. `draft`: the
    /// file of the draft layer where it is not the model's.
    Engine(std::shared_ptr<const GgufFile> file, const EngineOptions& options,
           std::shared_ptr<const GgufFile> draft = nullptr);
    ~Engine();

    const Architecture& model() const { return *model_; }
    const EngineOptions& options() const { return options_; }
    const cpu::Kernels& kernels() const { return kernels_; }
    Split& split() { return split_; }
    Switches& switches() { return switches_; }
    Notices& notices() { return notices_; }
    Recorder& recorder() { return recorder_; }
    /// Windows in flight that memory was allocated for: 0, or from 2 to the number of stages.
    int pipeline_max() const { return windows_allocated_; }

    /// A new session with an empty state; the one before is ended.
    std::shared_ptr<Session> session();
    /// One pass over tokens; ends the session there is. Throws Error on ids out of range.
    EvalResult eval(const std::vector<int32_t>& tokens);

  private:
    /// Bytes of memory; doubles, since sizes of a hostile file pass 64 bits.
    struct Memory {
        double context = 0, states = 0, buffers = 0;
    };
    static void check(const Architecture& model, const EngineOptions& options);
    void run_alone(Stage& stage, Program& program);
    Memory kept_for_a_text() const;
    Memory allocated() const;
    uint64_t available() const;
    void require(const Memory& memory) const;
    uint64_t draft_bytes() const;
    int windows_that_fit(int asked);

    std::shared_ptr<const GgufFile> file_, draft_file_;
    std::unique_ptr<Architecture> model_;
    const EngineOptions options_;
    const cpu::Kernels& kernels_;
    Word done_;
    Recorder recorder_;
    EventLane* host_events_ = nullptr;
    Switches switches_;
    Notices notices_;
    int windows_allocated_ = 0, n_slots_ = 2, n_states_ = 2;
    Split split_;
    std::shared_ptr<Session> session_;
};

}  // namespace strata
