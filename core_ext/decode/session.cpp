#include "decode/session.h"

#include "base/cpu.h"
#include "base/error.h"

namespace strata {

Session::Session(const SessionParts& parts)
    : p_(parts),
      conductor_(*parts.split, parts.n_slots, parts.n_states, *parts.done, *parts.events),
      line_(parts.context + MAX_WINDOW_ROWS + 1),
      drafts_(parts.split->mtp.get(), line_, parts.model->dims().n_vocab) {
    conductor_.set_watchdog(parts.watchdog_ns);
    conductor_.set_chunk_tokens(line_.tokens.data());
    conductor_.clear_state();
    if (p_.split->mtp) p_.split->mtp->forget_from(0);
    in_force_ = shown_in_force_ = p_.switches->values();
    steps_used_ = p_.switches->steps.load(std::memory_order_relaxed);
    control_ = std::thread([this] { serve(); });
}

Session::~Session() { close(); }

void Session::close() {
    closing_.store(true, std::memory_order_release);
    cancel();
    std::lock_guard life(life_);
    if (closed_) return;
    closed_ = true;
    requests_.increment();
    control_.join();
    if (finish() == Finish::running)
        finish_.store(Finish::cancel, std::memory_order_release);  // asked for, never begun
    progress_.increment();
}

// ---- any thread

void Session::start(Request request) {
    std::lock_guard life(life_);
    if (closed_) throw Error("[session] it has been closed");
    const int length = static_cast<int>(request.tokens.size()), n_vocab = p_.model->dims().n_vocab;
    if (broken_) throw Error("[session] ended by an error (" + error() + "); open a new session");
    if (finish() == Finish::running)
        throw Error("[session] a request is running; wait for its end or cancel it");
    if (length == 0) throw Error("[session] the prompt should have at least one token, got none");
    if (length > p_.context)
        throw Error("[session] the prompt should fit the context of " + std::to_string(p_.context) +
                    " tokens, got " + std::to_string(length));
    for (int32_t token : request.tokens)
        if (token < 0 || token >= n_vocab)
            throw Error("[session] token ids should be from 0 to " + std::to_string(n_vocab - 1) + ", got " +
                        std::to_string(token));
    for (int32_t token : request.replay)
        if (token < 0 || token >= n_vocab)
            throw Error("[session] replayed token ids should be from 0 to " + std::to_string(n_vocab - 1) +
                        ", got " + std::to_string(token));
    if (request.max_tokens < 0)
        throw Error("[session] max_tokens should be 0 or more, got " + std::to_string(request.max_tokens));
    // The control thread is idle: the line is the caller's until requests_ is raised.
    shared_ = shared_prefix(request.tokens);
    std::copy(request.tokens.begin(), request.tokens.end(), line_.tokens.data());
    line_.count = length;
    {
        std::lock_guard lock(mutex_);
        next_request_ = std::move(request);
        stats_ = {};
    }
    cancelled_.store(false, std::memory_order_relaxed);
    read_from_.store(length, std::memory_order_relaxed);
    written_.store(length, std::memory_order_relaxed);
    finish_.store(Finish::running, std::memory_order_release);
    requests_.increment();
}

void Session::cancel() {
    cancelled_.store(true, std::memory_order_release);
    std::lock_guard life(life_);
    if (closed_) return;
    p_.done->increment();  // wakes the control thread where it holds back
}

std::vector<int32_t> Session::read() {
    const int from = read_from_.load(std::memory_order_relaxed),
              to = written_.load(std::memory_order_acquire);
    read_from_.store(to, std::memory_order_relaxed);
    return {line_.tokens.data() + from, line_.tokens.data() + to};
}

bool Session::wait(double seconds) {
    const uint64_t end = now_ns() + static_cast<uint64_t>(std::clamp(seconds, 0.0, 1e6) * 1e9);
    for (;;) {
        const uint64_t seen = progress_.value();
        if (written_.load(std::memory_order_acquire) > read_from_.load(std::memory_order_relaxed))
            return true;
        if (finish() != Finish::running) return true;
        const uint64_t now = now_ns();
        if (now >= end || !progress_.wait_ge(seen + 1, end - now)) return false;
    }
}

std::string Session::error() const {
    std::lock_guard lock(mutex_);
    return error_;
}

RequestStats Session::stats() const {
    std::lock_guard lock(mutex_);
    return stats_;
}

SwitchValues Session::in_force() const {
    std::lock_guard lock(mutex_);
    return shown_in_force_;
}

std::vector<int32_t> Session::tokens() const {
    const int count = written_.load(std::memory_order_acquire);
    return {line_.tokens.data(), line_.tokens.data() + count};
}

int Session::position() const {
    if (finish() == Finish::running) throw Error("[session] the position is known between requests only");
    return consumed_;
}

std::vector<uint64_t> Session::fingerprint() const {
    std::lock_guard life(life_);
    if (closed_) throw Error("[session] it has been closed");
    if (finish() == Finish::running) throw Error("[session] a fingerprint is taken between requests only");
    std::vector<uint64_t> hashes;
    for (size_t s = 0; s < p_.split->stages.size(); ++s)
        for (uint64_t hash :
             p_.split->stages[s]->fingerprint(conductor_.state(static_cast<int>(s)), consumed_))
            hashes.push_back(hash);
    return hashes;
}

std::optional<std::pair<int, uint64_t>> Session::draft_fingerprint() const {
    std::lock_guard life(life_);
    if (closed_) throw Error("[session] it has been closed");
    if (finish() == Finish::running) throw Error("[session] a fingerprint is taken between requests only");
    const Mtp* mtp = p_.split->mtp.get();
    if (!mtp) return std::nullopt;
    return std::pair{mtp->caught_up(), mtp->fingerprint(mtp->caught_up())};
}

/// The part of the prompt that the state holds already. Its last token is always read anew: it is the first
/// row 0.
int Session::shared_prefix(const std::vector<int32_t>& prompt) const {
    int shared = 0;
    const int most = std::min(consumed_, static_cast<int>(prompt.size()) - 1);
    while (shared < most && line_.tokens[shared] == prompt[shared]) ++shared;
    // Cells can be written over from any position on; a recurrent state only goes forward.
    const bool recurrent = p_.model->dims().delta.n_v_heads > 0;
    return recurrent && shared < consumed_ ? 0 : shared;
}

// ---- the control thread

void Session::serve() {
    wake_promptly();  // its turns are short, and stages wait for them
    for (uint64_t next = 1;; ++next) {
        while (!requests_.wait_ge(next, WAIT_BOUND_NS)) {
        }
        if (closing_.load(std::memory_order_acquire)) return;
        Request request;
        {
            std::lock_guard lock(mutex_);
            request = std::move(next_request_);
        }
        run(request);
    }
}

void Session::run(const Request& request) {
    Finish finish = Finish::error;
    try {
        begin(request);
        finish = prefill() ? decode() : Finish::cancel;
        settle_drafts();
        conductor_.drain();
    } catch (const std::exception& error) {
        finish = Finish::error;
        broken_ = true;
        record_launched_guesses();
        give_up_guesses(1, true);
        p_.events->moment(EventKind::error, HOST_LANE, 0, 0);
        conductor_.abandon();
        std::lock_guard lock(mutex_);
        error_ = error.what();
    }
    end(finish);
}

}  // namespace strata
