#include "decode/drafts.h"

#include <limits>

namespace strata {

Drafts::Drafts(Mtp* mtp, const TokenLine& line, int n_vocab)
    : mtp_(mtp), line_(line), n_vocab_(n_vocab), lookup_(static_cast<int>(line.tokens.size())) {}

void Drafts::begin_request(std::span<const int32_t> replay, int replay_base) {
    stop();
    lookup_.forget();
    replay_ = replay;
    replay_base_ = replay_base;
}

void Drafts::start(const SwitchValues& switches, int position, std::span<const int32_t> forced,
                   float stop_below, uint32_t window) {
    source_ = switches.draft;
    quality_ = switches.replay_quality;
    stopped_ = false;
    base_ = position + 1;
    if (source_ == DraftSource::lookup) match_ = lookup_.find({line_.tokens.data(), size_t(line_.count)});
    if (chained()) mtp_->begin_chain(position, forced, source_ == DraftSource::mtp ? stop_below : 0, window);
}

void Drafts::begin(const SwitchValues& switches, int position, bool guessing, uint32_t window) {
    start(switches, position, {}, guessing ? 0 : switches.draft_min_p, window);
}

void Drafts::begin_forced(const SwitchValues& switches, int position, std::span<const int32_t> in_flight,
                          uint32_t window) {
    start(switches, position, in_flight, 0, window);
}

void Drafts::catch_up(int length, uint32_t window) {
    if (chained()) mtp_->catch_up_behind_chain(length, window);
}

void Drafts::stop() {
    if (mtp_) mtp_->cut();
    stopped_ = true;
}

void Drafts::want(int outputs) {
    if (!stopped_ && chained()) mtp_->want(outputs);
}

void Drafts::pump() {
    if (!stopped_ && chained()) mtp_->pump();
}

/// Outputs that are there.
int Drafts::there() const {
    constexpr int ENDLESS = std::numeric_limits<int>::max();
    if (stopped_) return 0;
    switch (source_) {
        case DraftSource::mtp:
            return mtp_->count();
        case DraftSource::lookup:
            return match_.period > 0 ? ENDLESS : 0;
        case DraftSource::replay: {
            // The real chain runs for its time where there is one.
            const int known = std::max(0, replay_base_ + static_cast<int>(replay_.size()) - base_);
            return mtp_ ? std::min(known, mtp_->count()) : known;
        }
        case DraftSource::none:
            break;
    }
    return 0;
}

bool Drafts::ended(int index) const {
    if (index < there()) return false;
    if (stopped_ || !chained() || mtp_->exhausted()) return true;
    return source_ == DraftSource::replay && base_ + index >= replay_base_ + static_cast<int>(replay_.size());
}

std::optional<Draft> Drafts::at(int index) const {
    if (index >= there()) return std::nullopt;
    if (source_ == DraftSource::lookup)  // a match that overlaps the end goes on as the loop that it is
        return Draft{line_.tokens[match_.end + 1 + index % match_.period], 0, -1, true};
    if (source_ == DraftSource::replay) {
        constexpr uint64_t REPLAY_SEED = 0x7265706C6179;
        const int position = base_ + index;
        const int32_t token = replay_[position - replay_base_];
        const bool right = noise(REPLAY_SEED, position, 0) < quality_;
        return Draft{right ? token : (token + 1) % n_vocab_, quality_, right ? -1 : token, true};
    }
    const Mtp::Output& output = mtp_->output(index);
    return Draft{output.token, output.pick.probability, output.pick.second,
                 output.token == output.pick.token};
}

std::optional<int> Drafts::length_from(int first, int most, float min_p) const {
    if (source_ != DraftSource::mtp) min_p = 0;
    for (int i = 0; i < most; ++i) {
        const auto draft = at(first + i);
        if (!draft) {
            if (ended(first + i)) return i;
            return std::nullopt;
        }
        if (draft->probability < min_p) return i;
    }
    return most;
}

}  // namespace strata
