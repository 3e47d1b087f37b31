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
    lookup_.forget();
    // The cell before the first new token pairs with it, so it is made anew.
    if (p_.split->mtp) p_.split->mtp->forget_from(std::max(0, shared_ - 1));
    consumed_ = counting_.cached_tokens = shared_;

    p_.split->last().set_sampling(request.sampling, &line_);
    if (p_.split->mtp) p_.split->mtp->set_sampling(request.sampling, &line_);
    wanted_ = request.max_tokens > 0 ? request.max_tokens : p_.context + 1;
    chain_ordered_ = false;
    most_rows_ = 1;
    drafting_stopped_ = false;
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
        conductor_.launch(HandOffMode::serial);
        if (schedule.windows().empty()) return;
        conductor_.wait();
    }
}

/// A short rest is read through windows of 8 rows, one after the other, all of them committed.
void Session::read_prompt_windows(int length) {
    Schedule& schedule = conductor_.schedule();
    while (consumed_ < length && !cancelled()) {
        Window& window =
            schedule.open(WindowKind::prompt, consumed_, std::min(MAX_WINDOW_ROWS, length - consumed_));
        std::copy_n(line_.tokens.data() + window.position, window.rows, window.tokens.data());
        p_.events->moment(EventKind::window, HOST_LANE, window.id, window.rows, window.position,
                          static_cast<int>(window.fate));
        for (;;) {
            conductor_.note_finished();
            if (window.finished_on(schedule.n_stages() - 1)) break;
            conductor_.launch(mode());
            conductor_.wait();
        }
        conductor_.commit(window, window.rows);
        ++counting_.prompt_windows;
        note_read(window.rows);
        schedule.close();
    }
}

/// The state holds `rows` more of the prompt; the draft layer follows where it is in use.
void Session::note_read(int rows) {
    consumed_ += rows;
    if (p_.split->mtp && in_force_.draft == DraftSource::mtp)
        p_.split->mtp->catch_up(consumed_, conductor_.schedule().windows().front().id);
}

// ---- decode

Finish Session::decode() {
    Finish finish = before_window();
    while (finish == Finish::running) {
        conductor_.note_finished();
        auto& windows = conductor_.schedule().windows();
        if (windows.empty() && drafts_ready()) build_window();
        conductor_.launch(mode());
        if (!windows.empty() && windows.front().finished_on(conductor_.schedule().n_stages() - 1)) {
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
    hold();
    if (cancelled()) return Finish::cancel;
    if (consumed_ + 1 > p_.context) return Finish::context;  // row 0 itself doesn't fit
    window_begin_ns_ = now_ns();
    latch();
    order_drafts();
    return Finish::running;
}

/// The first window of a request has row 0 alone; later ones as many drafts as are allowed and come.
void Session::order_drafts() {
    const bool first = counting_.windows == 0;
    const bool drafting = in_force_.draft != DraftSource::none && !drafting_stopped_ && !first;
    most_rows_ = drafting ? most_rows(in_force_.draft_max, wanted_, consumed_, p_.context) : 1;
    Mtp* mtp = p_.split->mtp.get();
    const bool chain = mtp && (in_force_.draft == DraftSource::mtp || in_force_.draft == DraftSource::replay);
    chain_ordered_ = chain && most_rows_ > 1;
    if (chain_ordered_)
        mtp->chain(consumed_, most_rows_ - 1, in_force_.draft == DraftSource::mtp ? in_force_.draft_min_p : 0,
                   conductor_.schedule().last_id() + 1);
}

bool Session::drafts_ready() const { return !chain_ordered_ || p_.split->mtp->landed(); }

void Session::build_window() {
    Window& window = conductor_.schedule().open(WindowKind::verify, consumed_, 1);
    window.tokens[0] = line_.tokens[consumed_];
    if (most_rows_ > 1) window.rows = 1 + take_drafts(window);
    EventLane& events = *p_.events;
    events.moment(EventKind::window, HOST_LANE, window.id, window.rows, window.position,
                  static_cast<int>(window.fate));
    for (int i = 1; i < window.rows; ++i)
        events.moment(EventKind::draft_token, HOST_LANE, window.id, i, window.tokens[i],
                      static_cast<int>(std::lround(window.probability[i] * 1e6f)));
}

/// Fills rows 1.. ; returns how many.
int Session::take_drafts(Window& window) {
    const int most = most_rows_ - 1;
    switch (in_force_.draft) {
        case DraftSource::mtp: {
            const int count = p_.split->mtp->count();
            for (int i = 0; i < count; ++i) {
                window.tokens[i + 1] = p_.split->mtp->output(i).token;
                window.probability[i + 1] = p_.split->mtp->output(i).probability;
            }
            return count;
        }
        case DraftSource::lookup:
            return lookup_.draft({line_.tokens.data(), size_t(line_.count)},
                                 {window.tokens.data() + 1, size_t(most)});
        case DraftSource::replay:
            return replay_drafts(window, most);
        case DraftSource::none:
            break;
    }
    return 0;
}

/// Drafts of a recorded plain run, each replaced by a wrong token with seeded probability 1 - q.
int Session::replay_drafts(Window& window, int most) const {
    constexpr uint64_t REPLAY_SEED = 0x7265706C6179;
    const float q = in_force_.replay_quality;
    int count = 0;
    for (; count < most; ++count) {
        const int position = consumed_ + 1 + count;
        const size_t at = position - prompt_length_;
        if (at >= request_->replay.size()) break;
        const bool right = noise(REPLAY_SEED, position, 0) < q;
        window.tokens[count + 1] =
            right ? request_->replay[at] : (request_->replay[at] + 1) % p_.model->dims().n_vocab;
        window.probability[count + 1] = q;
    }
    return count;
}

/// Accept, commit, emit. The window leaves; its commits may still run.
Finish Session::verdict() {
    const uint64_t start = now_ns();
    const Window window = conductor_.schedule().windows().front();
    const auto& all_picks = p_.split->last().picks(window.slot);
    const std::span<const int32_t> picks(all_picks.data(), window.rows);
    const int accepted = accept({window.tokens.data() + 1, size_t(window.rows - 1)}, picks);
    const int counted = count_tokens(picks, accepted, request_->end_tokens, wanted_);

    conductor_.commit(window, counted);
    conductor_.schedule().close();
    consumed_ += counted;
    wanted_ -= counted;
    const bool stop = std::find(request_->end_tokens.begin(), request_->end_tokens.end(),
                                picks[counted - 1]) != request_->end_tokens.end();
    count_verdict(window, accepted, counted, start);
    emit(picks.first(counted));
    p_.events->span(EventKind::verdict, start, HOST_LANE, window.id, window.rows, accepted, counted);
    for (int i = 0; i < counted; ++i)
        p_.events->moment(EventKind::token, HOST_LANE, window.id, 0, picks[i], window.position + 1 + i);
    if (stop) return Finish::stop;
    if (wanted_ == 0) return Finish::length;
    return Finish::running;
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
    c.window_ns += now - window_begin_ns_;
    if (c.first_token_ns == 0) c.first_token_ns = now - c.begin_ns;
    c.last_token_ns = now;
    if (!drafting_stopped_ && c.drafted >= STOP_DRAFTING_AFTER && c.accepted == 0 &&
        in_force_.draft == DraftSource::mtp) {
        drafting_stopped_ = c.drafting_stopped = true;
        p_.notices->add("the draft layer's first " + std::to_string(c.drafted) +
                        " drafts were all rejected: drafting stops until it is switched on again");
    }
}

// ---- holding back and switching

/// Why the next window has to wait now.
Session::Held Session::held(uint64_t now) const {
    constexpr auto relaxed = std::memory_order_relaxed;
    if (p_.switches->paused.load(relaxed))
        return p_.switches->steps.load(relaxed) == steps_used_ ? Held::pause : Held::no;
    const float rate = p_.switches->rate.load(relaxed);
    const int owed = counting_.generated - rate_begin_tokens_;
    // A cap that has just been changed counts from the next latch on.
    return rate > 0 && rate == in_force_.rate && owed > (now - rate_begin_ns_) * 1e-9 * rate ? Held::rate
                                                                                             : Held::no;
}

void Session::hold() {
    Held why = held(now_ns());
    while (why != Held::no) {
        const uint64_t start = now_ns();
        Held next = why;
        while (next == why && !cancelled()) {
            const uint64_t seen = p_.done->value();
            next = held(now_ns());
            // Until somebody calls, or a slice has passed: a switch was set, or the cap lets the next window
            // go.
            if (next == why) p_.done->wait_ge(seen + 1, 2'000'000, 0);
        }
        p_.events->span(why == Held::pause ? EventKind::paused : EventKind::throttle, start, HOST_LANE, 0, 0);
        counting_.held_ns += now_ns() - start;
        why = cancelled() ? Held::no : next;
    }
    // A step lets one window through; steps asked for outside a pause count for nothing.
    steps_used_ = p_.switches->paused.load(std::memory_order_relaxed)
                      ? steps_used_ + 1
                      : p_.switches->steps.load(std::memory_order_relaxed);
}

/// The switches asked for become those in force; what can't apply is said once and left as it is.
void Session::latch() {
    const SwitchValues before = in_force_, asked = p_.switches->values();
    const uint32_t draft_asked = p_.switches->draft_asked.load(std::memory_order_relaxed);
    in_force_ = asked;
    if (draft_asked != draft_asked_) {
        draft_asked_ = draft_asked;
        drafting_stopped_ = counting_.drafting_stopped = false;
    }
    const bool news = !(asked == last_asked_);
    last_asked_ = asked;
    const auto refuse = [&](const char* line) {
        if (news) p_.notices->add(line);
    };
    if (in_force_.overlap && p_.split->stages.size() == 1) {
        in_force_.overlap = false;
        refuse(
            "STRATA_SPLIT_OVERLAP needs two stages or more: there is no hand-off to overlap; running serial");
    }
    if (in_force_.pipeline_windows != 0) {
        in_force_.pipeline_windows = 0;
        refuse("STRATA_PIPELINE_WINDOWS: pipelined windows are not in this version; running with 0");
    }
    if (in_force_.draft == DraftSource::mtp && !p_.split->mtp) {
        in_force_.draft = DraftSource::lookup;
        refuse("--draft mtp needs a draft layer, which this model file lacks; drafting by lookup");
    }
    if (in_force_.rate != before.rate || rate_begin_ns_ < counting_.begin_ns) {
        rate_begin_ns_ = now_ns();
        rate_begin_tokens_ = counting_.generated;
    }
    if (in_force_ == before) return;
    record_toggles(before);
    std::lock_guard lock(mutex_);
    shown_in_force_ = in_force_;
}

void Session::record_toggles(const SwitchValues& before) {
    const auto toggle = [&](SwitchId id, auto was, auto is, double scale = 1) {
        if (was == is) return;
        p_.events->moment(EventKind::toggle, HOST_LANE, conductor_.schedule().last_id() + 1, 0,
                          static_cast<int>(id),
                          static_cast<int>(std::lround(static_cast<double>(is) * scale)));
    };
    toggle(SwitchId::overlap, before.overlap, in_force_.overlap);
    toggle(SwitchId::pipeline_windows, before.pipeline_windows, in_force_.pipeline_windows);
    toggle(SwitchId::draft, static_cast<int>(before.draft), static_cast<int>(in_force_.draft));
    toggle(SwitchId::draft_max, before.draft_max, in_force_.draft_max);
    toggle(SwitchId::draft_min_p, before.draft_min_p, in_force_.draft_min_p, 1e6);
    toggle(SwitchId::theta, before.theta, in_force_.theta, 1e6);
    toggle(SwitchId::short_read, before.short_read, in_force_.short_read);
    toggle(SwitchId::rate, before.rate, in_force_.rate);
}

// ---- end

void Session::publish_stats() {
    std::lock_guard lock(mutex_);
    stats_ = counting_;
}

void Session::end(Finish finish) {
    counting_.end_ns = now_ns();
    publish_stats();
    p_.events->moment(EventKind::request_end, HOST_LANE, request_number_, 0, static_cast<int>(finish),
                      counting_.generated);
    request_ = nullptr;
    finish_.store(finish, std::memory_order_release);
    progress_.increment();
}

}  // namespace strata
