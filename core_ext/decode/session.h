#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "decode/conductor.h"
#include "decode/drafts.h"
#include "decode/switches.h"

namespace strata {

struct Request {
    std::vector<int32_t> tokens;  // the whole prompt
    int max_tokens = 0;           // 0: as many as the context holds
    Sampling sampling;
    std::vector<int32_t> end_tokens;
    std::vector<int32_t> replay;  // `replay` drafts: what a plain run of the same request wrote
};

/// What became of guesses: built = gated + late + launched, launched = kept + rolled_back + ended.
struct GuessStats {
    int built = 0, gated = 0, late = 0, launched = 0, kept = 0, rolled_back = 0, ended = 0;
    // of verdicts with a launched guess behind them that was not kept
    int drafts_wrong = 0, bonus_wrong = 0, forced = 0, second_choice_right = 0;
    std::array<int, 32> kept_at_depth{};  // by the number of windows ahead when it was launched
};

/// Counters of one request.
struct RequestStats {
    int prompt_tokens = 0, cached_tokens = 0, generated = 0;
    int windows = 0, windows_overlapped = 0, prompt_windows = 0, chunks = 0;
    int drafted = 0, accepted = 0;
    std::array<int, MAX_WINDOW_ROWS> drafted_at{}, accepted_at{};  // by draft position, from 1
    int prefill_rows = 0;
    uint64_t prefill_ns = 0;  // prompt rows read
    uint64_t begin_ns = 0, end_ns = 0, first_token_ns = 0, last_token_ns = 0;
    uint64_t window_ns = 0;  // verdict to verdict, less what was held
    // by how the window came to be: fresh, kept after fresh, kept after kept
    std::array<int, 3> windows_by_class{}, tokens_by_class{};
    std::array<uint64_t, 3> window_ns_by_class{};
    GuessStats guesses;
    int undone = 0;        // speculative commits undone
    uint64_t held_ns = 0;  // by a rate cap or a pause
    bool drafting_stopped = false;
    std::vector<KernelTally> kernels;  // at the end, where kernels are timed
};

/// What the engine's thread-safe parts say to anyone who asks, beside the switches.
class Notices {
  public:
    void add(std::string line) {
        std::lock_guard lock(mutex_);
        lines_.push_back(std::move(line));
    }
    std::vector<std::string> take() {
        std::lock_guard lock(mutex_);
        return std::exchange(lines_, {});
    }

  private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

/// What a session needs of the engine that it runs on.
struct SessionParts {
    const Architecture* model = nullptr;
    Split* split = nullptr;
    Switches* switches = nullptr;
    Notices* notices = nullptr;
    EventLane* events = nullptr;
    Word* done = nullptr;
    int context = 0;
    int chunk = 0;
    int n_slots = 2;
    int n_states = 2;
    int windows_allocated = 0;  // in flight at most
    uint64_t watchdog_ns = WAIT_BOUND_NS + 5'000'000'000;
};

/// One line of tokens (state + position), decoded by one control thread, request after request.
class Session {
  public:
    explicit Session(const SessionParts& parts);
    ~Session();
    /// Cancels and waits for the control thread; from then on the engine may go. What was read stays
    /// readable.
    void close();

    /// Begins a request. Throws Error on bad input, or while one runs.
    void start(Request request);
    void cancel();

    /// Tokens emitted since the last call (one caller).
    std::vector<int32_t> read();
    /// Until tokens are there to read or the request has ended. False after `seconds`.
    bool wait(double seconds);

    Finish finish() const { return finish_.load(std::memory_order_acquire); }
    std::string error() const;
    int position() const;
    std::vector<int32_t> tokens() const;
    RequestStats stats() const;
    SwitchValues in_force() const;
    /// By layer. Not while a request runs.
    std::vector<uint64_t> fingerprint() const;
    /// The draft layer's cells that hold true rows: how many, and their hash.
    std::optional<std::pair<int, uint64_t>> draft_fingerprint() const;

  private:
    void serve();
    void run(const Request& request);

    // The story of a request, in order.
    void begin(const Request& request);
    bool prefill();  // false: cancelled
    Finish decode();
    void end(Finish finish);

    // One turn of decoding.
    Finish before_window();
    void build_windows();
    bool build_fresh();
    bool build_guess();
    void gate_guesses(size_t from);
    Finish verdict();

    int shared_prefix(const std::vector<int32_t>& prompt) const;
    void read_chunks(int length);
    void read_prompt_windows(int length);
    void note_read(int rows);
    void drop_unlaunched();
    void hold();
    enum class Held : uint8_t { no, pause, rate, step };  // step: let through a pause
    Held held(uint64_t now) const;
    void latch();
    void record_toggles(const SwitchValues& before);
    void order_drafts();
    void order_more_drafts();
    void want_drafts();
    void settle_drafts();
    bool came_true(const Window& verified, int accepted, int32_t bonus) const;
    void take_drafts(Window& window, int count);
    void record_window(const Window& window) const;
    void record_launched_guesses();
    void give_up_guesses(size_t from, bool ending);
    void judge_miss(const Window& window, int accepted, int32_t bonus);
    void keep_guess(WindowFate after);
    bool ends_text(int32_t token) const;
    void emit(std::span<const int32_t> tokens);
    void count_verdict(const Window& window, int accepted, int counted, uint64_t now);
    bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
    Limits limits() const {
        return {in_force_.overlap ? HandOffMode::overlapped : HandOffMode::serial, in_force_.spec_depth,
                in_force_.theta, in_force_.pipeline_windows > 1, in_force_.pipeline_windows > 0};
    }
    bool guessing() const {
        return in_force_.pipeline_windows > 1 && in_force_.spec_depth > 0 && !drafting_stopped_;
    }
    void publish_stats();
    void time_kernels();
    void tell_kernels();

    const SessionParts p_;
    Conductor conductor_;
    TokenLine line_;
    Drafts drafts_;

    // The control thread's, during a request.
    const Request* request_ = nullptr;
    SwitchValues in_force_;
    std::optional<SwitchValues> last_asked_;  // none yet in this request: what can't apply is said
    uint32_t draft_asked_ = 0;
    int consumed_ = 0;  // rows that the state holds: line_[consumed_] is the next row 0
    int prompt_length_ = 0;
    int shared_ = 0;  // of the prompt, held already
    int wanted_ = 0;  // tokens still wanted
    // Of the draft layer since it was last asked for, whatever request.
    int layer_drafted_ = 0, layer_accepted_ = 0;
    bool drafting_stopped_ = false;
    std::vector<int32_t> in_flight_;  // tokens that a forced chain is run through
    int undone_before_ = 0;
    int taken_ = 0;               // predictions that windows have taken
    bool kept_ = false;           // the last verdict kept a guess, which is now the oldest window
    bool guesses_gated_ = false;  // no guess is built before the next verdict
    int most_rows_ = 1;           // of the next fresh window
    uint32_t request_number_ = 0;
    uint64_t window_begin_ns_ = 0;
    uint64_t rate_begin_ns_ = 0;  // tokens are capped from here on
    int rate_begin_tokens_ = 0;
    uint32_t steps_used_ = 0;
    RequestStats counting_;

    // Shared. written_: tokens of the line that a reader may see (release after the write, acquire before the
    // read).
    std::atomic<int> written_{0};
    std::atomic<int> read_from_{0};
    std::atomic<Finish> finish_{Finish::cancel};
    std::atomic<bool> cancelled_{false};
    std::atomic<bool> closing_{false};
    Word progress_;             // raised with every verdict and at the end
    mutable std::mutex life_;   // start, cancel, close and whatever touches the engine from outside
    bool closed_ = false;       // guarded by life_
    mutable std::mutex mutex_;  // guards what follows; held for copies only
    RequestStats stats_;
    SwitchValues shown_in_force_;
    std::string error_;
    Request next_request_;
    std::atomic<bool> broken_{false};  // after an error: a new session is needed
    Word requests_;
    std::thread control_;  // last
};

}  // namespace strata
