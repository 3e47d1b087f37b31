#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "decode/session.h"

/// Between two verdicts: what holds a session back, and the switches.
namespace strata {

/// Why the next window has to wait now.
Session::Held Session::held(uint64_t now) const {
    constexpr auto relaxed = std::memory_order_relaxed;
    if (p_.switches->paused.load(relaxed))
        return p_.switches->steps.load(relaxed) == steps_used_ ? Held::pause : Held::step;
    const float rate = p_.switches->rate.load(relaxed);
    const int owed = counting_.generated - rate_begin_tokens_;
    // A cap that has just been changed counts from the next latch on.
    return rate > 0 && rate == in_force_.rate && owed > (now - rate_begin_ns_) * 1e-9 * rate ? Held::rate
                                                                                             : Held::no;
}

void Session::hold() {
    Held why = held(now_ns());
    while (why == Held::pause || why == Held::rate) {
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
    steps_used_ = why == Held::step ? steps_used_ + 1 : p_.switches->steps.load(std::memory_order_relaxed);
}

/// The switches asked for become those in force; what can't apply is said once and left as it is.
void Session::latch() {
    const SwitchValues before = in_force_, asked = p_.switches->values();
    const uint32_t draft_asked = p_.switches->draft_asked.load(std::memory_order_relaxed);
    in_force_ = asked;
    if (draft_asked != draft_asked_) {
        draft_asked_ = draft_asked;
        drafting_stopped_ = counting_.drafting_stopped = false;
        layer_drafted_ = layer_accepted_ = 0;
    }
    const bool news = asked != last_asked_;
    last_asked_ = asked;
    // Put together only when it is said: this runs at every verdict.
    const auto refuse = [&](const auto&... parts) {
        if (news) p_.notices->add((std::string() + ... + parts));
    };
    if (in_force_.overlap && p_.split->stages.size() == 1) {
        in_force_.overlap = false;
        refuse(
            "STRATA_SPLIT_OVERLAP needs two stages or more: there is no hand-off to overlap; running serial");
    }
    const int n_stages = static_cast<int>(p_.split->stages.size());
    int& windows = in_force_.pipeline_windows;
    const auto refuse_windows = [&](int instead, const auto&... why) {
        windows = instead;
        refuse("STRATA_PIPELINE_WINDOWS=", std::to_string(asked.pipeline_windows), why..., "; running with ",
               std::to_string(instead));
    };
    if (windows > 0 && n_stages == 1)
        refuse_windows(0, " needs two stages or more");
    else if (windows == 1 && n_stages != 2)
        refuse_windows(0, " needs exactly two stages, here are ", std::to_string(n_stages));
    else if (windows > std::max(1, p_.windows_allocated))  // a clamp never yields 1
        refuse_windows(p_.windows_allocated, " is more than was allocated at load (--pipeline-max, two or more",
                       ", at most one a stage)");
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
                          static_cast<int>(std::lround(std::min(static_cast<double>(is) * scale, 2e9))));
    };
    toggle(SwitchId::overlap, before.overlap, in_force_.overlap);
    toggle(SwitchId::pipeline_windows, before.pipeline_windows, in_force_.pipeline_windows);
    if (before.draft == in_force_.draft && before.replay_quality != in_force_.replay_quality)
        toggle(SwitchId::draft, -1, static_cast<int>(in_force_.draft));
    toggle(SwitchId::draft, static_cast<int>(before.draft), static_cast<int>(in_force_.draft));
    toggle(SwitchId::draft_max, before.draft_max, in_force_.draft_max);
    toggle(SwitchId::draft_min_p, before.draft_min_p, in_force_.draft_min_p, 1e6);
    toggle(SwitchId::theta, before.theta, in_force_.theta, 1e6);
    toggle(SwitchId::short_read, before.short_read, in_force_.short_read);
    toggle(SwitchId::rate, before.rate, in_force_.rate);
    toggle(SwitchId::force_miss, before.force_miss, in_force_.force_miss);
    toggle(SwitchId::spec_depth, before.spec_depth, in_force_.spec_depth);
    toggle(SwitchId::chain_ahead, before.chain_ahead, in_force_.chain_ahead);
}

}  // namespace strata
