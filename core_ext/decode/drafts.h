#pragma once

#include <optional>
#include <span>

#include "decode/lookup.h"
#include "decode/mtp.h"
#include "decode/switches.h"

namespace strata {

/// A predicted token.
struct Draft {
    int32_t token = 0;
    float probability = 0;  // 0 where the source knows none
    int32_t second = -1;    // the source's second choice; -1: none
    bool agreed = true;     // false: the source was forced to this token and would have picked another
};

/// What comes next, as far as anybody can tell: a line of predicted tokens behind one row 0, which windows
/// take from one after the other. Output i stands at position base + i. Knows the sources; knows nothing of
/// windows, stages or verdicts.
class Drafts {
  public:
    /// `mtp` may be null.
    Drafts(Mtp* mtp, const TokenLine& line, int n_vocab);

    /// A new request: what was looked up belongs to another line. `replay`: what `replay` drafts from; its
    /// first token stands at `replay_base`.
    void begin_request(std::span<const int32_t> replay, int replay_base);

    /// Predictions behind the row 0 at `position`, the last token of the line. `guessing`: outputs behind the
    /// first below the floor are wanted too.
    void begin(const SwitchValues& switches, int position, bool guessing, uint32_t window);
    /// The same behind a row 0 that tokens in flight follow: the layer is run through them, and goes on.
    void begin_forced(const SwitchValues& switches, int position, std::span<const int32_t> in_flight,
                      uint32_t window);
    /// The true rows below `length` are there; the line of predictions goes on as it is.
    void catch_up(int length, uint32_t window);
    /// No further prediction.
    void stop();

    DraftSource source() const { return source_; }
    /// Does the draft layer run for this source? Replayed drafts cost what its own do.
    bool by_layer(DraftSource source) const {
        return mtp_ && (source == DraftSource::mtp || source == DraftSource::replay);
    }
    /// Are the predictions made as the switches say?
    bool go_by(const SwitchValues& switches) const {
        return source_ == switches.draft &&
               (source_ != DraftSource::replay || quality_ == switches.replay_quality);
    }
    int position_of(int index) const { return base_ + index; }
    bool stopped() const { return stopped_; }
    /// So many outputs, in all.
    void want(int outputs);
    void pump();
    /// Output `index`, nothing if it is not there; whether one will come says ended().
    std::optional<Draft> at(int index) const;
    bool ended(int index) const;
    /// How many outputs from `first` on make the drafts of a window, `most` at most: up to the first below
    /// the floor. Nothing while that can't be told.
    std::optional<int> length_from(int first, int most, float min_p) const;

  private:
    void start(const SwitchValues& switches, int position, std::span<const int32_t> forced, float stop_below,
               uint32_t window);
    bool chained() const { return by_layer(source_); }
    int there() const;

    Mtp* const mtp_;
    const TokenLine& line_;
    const int n_vocab_;
    Lookup lookup_;
    std::span<const int32_t> replay_;
    int replay_base_ = 0;
    DraftSource source_ = DraftSource::none;
    float quality_ = 1;
    bool stopped_ = true;
    int base_ = 0;
    Lookup::Match match_;
};

}  // namespace strata
