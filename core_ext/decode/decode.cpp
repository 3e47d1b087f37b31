#include <cmath>

#include "base/error.h"
#include "decode/session.h"

/// The story of a request: begin, prefill, decode, end.
namespace strata {

constexpr int STOP_DRAFTING_AFTER = 64;  // drafts, none of them accepted

// ---- begin

void Session::begin(const Request& request) {
    request_ = &request;
    counting_ = {};
    counting_.begin_ns = now_ns();
    counting_.prompt_tokens = prompt_length_ = static_cast<int>(request.tokens.size());

    if (shared_ == 0) conductor_.clear_state();
    drafts_.begin_request(request.replay, prompt_length_);
    // The cell before the first new token pairs with it, so it is made anew.
    if (p_.split->mtp) p_.split->mtp->forget_from(std::max(0, shared_ - 1));
    consumed_ = counting_.cached_tokens = shared_;

    p_.split->last().set_sampling(request.sampling, &line_);
    if (p_.split->mtp) p_.split->mtp->set_sampling(request.sampling, &line_);
    wanted_ = request.max_tokens > 0 ? request.max_tokens : p_.context + 1;
    most_rows_ = 1;
    kept_ = false;
    time_kernels();
    counting_.drafting_stopped = drafting_stopped_;
    undone_before_ = conductor_.undone();
    ++request_number_;
    p_.events->moment(EventKind::request_begin, HOST_LANE, request_number_, 0, prompt_length_, shared_);
    last_asked_ = {};
    latch();
    publish_stats();
}

// ---- prefill

/// Reads the prompt up to its last token, which is the first window's row 0. False if cancelled.
bool Session::prefill() {
    const uint64_t start = now_ns();
    const int length = prompt_length_ - 1;
    counting_.prefill_rows = length - consumed_;
    if (counting_.prefill_rows > in_force_.short_read)
        read_chunks(length);
    else
        read_prompt_windows(length);
    counting_.prefill_ns = now_ns() - start;
    publish_stats();
    return consumed_ == length && !cancelled();
}

/// Chunks flow through the stages: while stage s+1 reads chunk c, stage s reads chunk c+1.
void Session::read_chunks(int length) {
    Schedule& schedule = conductor_.schedule();
    int opened = consumed_;
    for (;;) {
        conductor_.note_finished();
        while (!schedule.windows().empty() &&
               schedule.windows().front().finished_on(schedule.n_stages() - 1)) {
            ++counting_.chunks;
            note_read(schedule.windows().front().rows);
            schedule.close();
        }
        // Two chunks a stage at most: no more have a place to be read.
        while (opened < length && !cancelled() &&
               schedule.windows().size() < static_cast<size_t>(schedule.n_stages()) + 1) {
            const int rows = std::min(p_.chunk, length - opened);
            schedule.open(WindowKind::chunk, opened, rows);
            opened += rows;
        }
        if (cancelled()) drop_unlaunched();
        conductor_.launch({HandOffMode::serial});
        if (schedule.windows().empty()) return;
        conductor_.wait();
    }
}

/// A short rest is read through windows of 8 rows, all of them committed: one after the other, or, where
/// windows are pipelined, one behind the other.
void Session::read_prompt_windows(int length) {
    Schedule& schedule = conductor_.schedule();
    auto& windows = schedule.windows();
    const uint32_t everywhere = (1ull << schedule.n_stages()) - 1;
    const size_t most = in_force_.pipeline_windows == 0 ? 1 : std::max(2, in_force_.pipeline_windows);
    int opened = consumed_;
    for (;;) {
        conductor_.note_finished();
        conductor_.launch(limits());  // commits what has been read
        while (!windows.empty() && windows.front().committed == everywhere) {
            ++counting_.prompt_windows;
            note_read(windows.front().rows);
            schedule.close();
        }
        while (opened < length && !cancelled() && windows.size() < most) {
            Window& window =
                schedule.open(WindowKind::prompt, opened, std::min(MAX_WINDOW_ROWS, length - opened));
            std::copy_n(line_.tokens.data() + window.position, window.rows, window.tokens.data());
            opened += window.rows;
            record_window(window);
        }
        if (cancelled()) drop_unlaunched();
        conductor_.launch(limits());
        if (windows.empty()) return;
        conductor_.wait();
    }
}

/// After a cancel only what has been launched is read to its end.
void Session::drop_unlaunched() {
    const auto& windows = conductor_.schedule().windows();
    size_t first = 0;
    while (first < windows.size() && windows[first].launched) ++first;
    conductor_.schedule().drop_from(first);
}

/// The state holds `rows` more of the prompt; the draft layer follows where it is in use.
void Session::note_read(int rows) {
    consumed_ += rows;
    if (drafts_.by_layer(in_force_.draft))
        p_.split->mtp->catch_up(consumed_, conductor_.schedule().windows().front().id);
}

// ---- decode

Finish Session::decode() {
    Finish finish = before_window();
    const int last = conductor_.schedule().n_stages() - 1;
    auto& windows = conductor_.schedule().windows();
    while (finish == Finish::running) {
        conductor_.note_finished();
        build_windows();
        conductor_.launch(limits());
        if (const auto gated = conductor_.schedule().at_gate(limits())) gate_guesses(*gated);
        record_launched_guesses();
        if (!windows.empty() && windows.front().finished_on(last)) {
            finish = verdict();
            if (finish == Finish::running) finish = before_window();
        } else {
            conductor_.wait();
        }
    }
    return finish;
}

/// Between two windows: what ends a text without a token, what holds it back, what was switched; then the
/// next drafts.
Finish Session::before_window() {
    const uint64_t held_before = counting_.held_ns;
    hold();
    if (counting_.windows == 0)
        window_begin_ns_ = p_.events->now();
    else
        window_begin_ns_ += counting_.held_ns - held_before;
    if (cancelled()) {
        give_up_guesses(1, true);
        conductor_.drop_from(0);
        return Finish::cancel;
    }
    if (consumed_ + 1 > p_.context) return Finish::context;  // row 0 itself doesn't fit
    latch();
    guesses_gated_ = false;
    if (kept_)
        order_more_drafts();
    else
        order_drafts();
    return Finish::running;
}

/// For a fresh window: the first of a request has row 0 alone; later ones as many drafts as are allowed and
/// come.
void Session::order_drafts() {
    const bool first = counting_.windows == 0;
    const bool drafting = in_force_.draft != DraftSource::none && !drafting_stopped_ && !first;
    most_rows_ = drafting ? most_rows(in_force_.draft_max, wanted_, consumed_, p_.context) : 1;
    taken_ = 0;
    if (!drafting || (most_rows_ == 1 && !guessing()))
        drafts_.stop();
    else
        drafts_.begin(in_force_, consumed_, guessing(), conductor_.schedule().last_id() + 1);
    want_drafts();
}

/// As many predictions as the windows still to be built can take, and a window's worth ahead of the verdict.
void Session::want_drafts() {
    if (!guessing()) return drafts_.want(most_rows_ - 1);
    const int in_flight = static_cast<int>(conductor_.schedule().windows().size());
    const int rows = in_force_.draft_max + 1, to_build = in_force_.pipeline_windows - in_flight;
    const int ahead = in_force_.chain_ahead ? rows : 0;
    drafts_.want(taken_ + std::max(0, to_build) * rows - (in_flight == 0) + ahead);
}

void Session::build_windows() {
    drafts_.pump();
    if (conductor_.schedule().windows().empty() && !build_fresh()) return;
    while (build_guess()) {
    }
}

/// The window behind a verdict. False while its drafts are not decided.
bool Session::build_fresh() {
    const auto count = drafts_.length_from(0, most_rows_ - 1, in_force_.draft_min_p);
    if (!count) return false;
    Window& window = conductor_.schedule().open(WindowKind::verify, consumed_, 1);
    window.tokens[0] = line_.tokens[consumed_];
    take_drafts(window, *count);
    record_window(window);
    return true;
}

/// Rows 1.. of a window, from the predictions.
void Session::take_drafts(Window& window, int count) {
    for (int i = 1; i <= count; ++i) {
        const Draft draft = *drafts_.at(taken_++);
        window.tokens[i] = draft.token;
        window.probability[i] = draft.probability;
        window.drafts_agreed &= draft.agreed;
    }
    window.rows = 1 + count;
}

void Session::record_window(const Window& window) const {
    EventLane& events = *p_.events;
    if (!events.on()) return;
    events.moment(EventKind::window, HOST_LANE, window.id, window.rows, window.position,
                  static_cast<int>(window.fate));
    for (int i = window.guess() ? 0 : 1; i < window.rows; ++i)
        events.moment(EventKind::draft_token, HOST_LANE, window.id, i, window.tokens[i],
                      static_cast<int>(std::lround(window.probability[i] * 1e6f)));
}

bool Session::ends_text(int32_t token) const {
    const auto& ends = request_->end_tokens;
    return std::find(ends.begin(), ends.end(), token) != ends.end();
}

/// Accept; keep the guess behind or give all guesses up; commit, emit. The window leaves; its commits may
/// still run.
Finish Session::verdict() {
    const uint64_t start = p_.events->now();
    Schedule& schedule = conductor_.schedule();
    const Window window = schedule.windows().front();
    const auto& all_picks = p_.split->last().picks(window.slot);
    const std::span<const int32_t> picks(all_picks.data(), window.rows);
    const int accepted = accept({window.tokens.data() + 1, size_t(window.rows - 1)}, picks);
    const int counted = count_tokens(picks, accepted, request_->end_tokens, wanted_);
    const int32_t bonus = picks[counted - 1];
    wanted_ -= counted;
    const Finish finish = ends_text(bonus) ? Finish::stop : wanted_ == 0 ? Finish::length : Finish::running;

    kept_ = finish == Finish::running && came_true(window, accepted, bonus);
    if (!kept_) {
        if (finish == Finish::running) judge_miss(window, accepted, bonus);
        give_up_guesses(1, finish != Finish::running);
    }
    conductor_.settle(window, counted);
    schedule.close();
    consumed_ += counted;
    count_verdict(window, accepted, counted, start);
    emit(picks.first(counted));
    p_.events->span(EventKind::verdict, start, HOST_LANE, window.id, window.rows, accepted, counted);
    for (int i = 0; i < counted; ++i)
        p_.events->moment(EventKind::token, HOST_LANE, window.id, 0, picks[i], window.position + 1 + i);
    if (kept_) keep_guess(window.fate);
    return finish;
}

void Session::emit(std::span<const int32_t> tokens) {
    std::copy(tokens.begin(), tokens.end(), line_.tokens.data() + line_.count);
    line_.count += static_cast<int>(tokens.size());
    publish_stats();
    written_.store(line_.count, std::memory_order_release);
    progress_.increment();
}

void Session::count_verdict(const Window& window, int accepted, int counted, uint64_t now) {
    RequestStats& c = counting_;
    ++c.windows;
    if (window.ahead) ++c.windows_overlapped;
    c.drafted += window.rows - 1;
    c.accepted += accepted;
    for (int i = 1; i < window.rows; ++i) ++c.drafted_at[i];
    for (int i = 1; i <= accepted; ++i) ++c.accepted_at[i];
    c.generated += counted;
    const size_t kind = static_cast<size_t>(window.fate);
    ++c.windows_by_class[kind];
    c.tokens_by_class[kind] += counted;
    c.window_ns_by_class[kind] += now - window_begin_ns_;
    c.window_ns += now - window_begin_ns_;
    window_begin_ns_ = now;  // the next one's time includes what this verdict takes
    c.undone = conductor_.undone() - undone_before_;
    if (c.first_token_ns == 0) c.first_token_ns = now - c.begin_ns;
    c.last_token_ns = now;
    if (in_force_.draft != DraftSource::mtp) return;
    layer_drafted_ += window.rows - 1;
    layer_accepted_ += accepted;
    if (!drafting_stopped_ && layer_drafted_ >= STOP_DRAFTING_AFTER && layer_accepted_ == 0 &&
        !p_.switches->keep_drafting.load(std::memory_order_relaxed)) {
        drafting_stopped_ = c.drafting_stopped = true;
        p_.notices->add("the draft layer's first " + std::to_string(layer_drafted_) +
                        " drafts were all rejected: drafting stops until it is switched on again");
    }
}

// ---- end

/// The draft layer's cells are left as any other arm would leave them: all true rows, no guess. Where the
/// prompt was cut short, what is owed may be long: the next request that goes on from it follows.
void Session::settle_drafts() {
    drafts_.stop();
    if (!drafts_.by_layer(in_force_.draft)) return;
    if (consumed_ < prompt_length_ - 1)
        p_.split->mtp->forget_owed();
    else
        p_.split->mtp->catch_up(consumed_, conductor_.schedule().last_id());
}

/// Nothing is in flight: a request begins.
void Session::time_kernels() {
    const bool on = p_.switches->kernel_times.load(std::memory_order_relaxed);
    for (auto& stage : p_.split->stages) stage->time_kernels(on);
    if (p_.split->mtp) p_.split->mtp->time_kernels(on);
}

/// Nothing is in flight any more.
void Session::tell_kernels() {
    for (auto& stage : p_.split->stages) stage->kernel_times().tell(stage->shape().index, counting_.kernels);
    if (p_.split->mtp) p_.split->mtp->kernel_times().tell(DRAFT_LANE, counting_.kernels);
}

void Session::publish_stats() {
    std::lock_guard lock(mutex_);
    stats_ = counting_;
}

void Session::end(Finish finish) {
    counting_.end_ns = now_ns();
    tell_kernels();
    publish_stats();
    p_.events->moment(EventKind::request_end, HOST_LANE, request_number_, 0, static_cast<int>(finish),
                      counting_.generated);
    request_ = nullptr;
    finish_.store(finish, std::memory_order_release);
    progress_.increment();
}

}  // namespace strata
