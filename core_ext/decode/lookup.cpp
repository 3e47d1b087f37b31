#include "decode/lookup.h"

#include <algorithm>
#include <bit>

namespace strata {

Lookup::Lookup(int capacity)
    : newest_(std::bit_ceil(static_cast<size_t>(std::clamp(capacity, 64, 1 << 20))), -1),
      previous_(capacity + 1, -1) {}

void Lookup::forget() {
    std::fill(newest_.begin(), newest_.end(), -1);
    indexed_ = 0;
}

size_t Lookup::bucket(int32_t first, int32_t second) const {
    const uint64_t key =
        static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 | static_cast<uint32_t>(second);
    return (key * 0x9E3779B97F4A7C15u >> 32) & (newest_.size() - 1);
}

/// Enters the pairs that end before the line's last token: the suffix must not find itself.
void Lookup::index(std::span<const int32_t> line) {
    for (int i = std::max(indexed_, 1); i + 1 < static_cast<int>(line.size()); ++i) {
        int32_t& head = newest_[bucket(line[i - 1], line[i])];
        previous_[i] = head;
        head = i;
    }
    indexed_ = std::max(indexed_, static_cast<int>(line.size()) - 1);
}

Lookup::Match Lookup::find(std::span<const int32_t> line) {
    const int n = static_cast<int>(line.size());
    if (n < MIN_MATCH + 1) return {};
    index(line);
    int best_end = -1, best_length = MIN_MATCH - 1;
    int end = newest_[bucket(line[n - 2], line[n - 1])];
    for (int tries = 0; end >= 0 && tries < MAX_TRIES && best_length < MAX_MATCH;
         ++tries, end = previous_[end]) {
        int length = 0;
        while (length < MAX_MATCH && length <= end && line[end - length] == line[n - 1 - length]) ++length;
        if (length > best_length) {
            best_length = length;
            best_end = end;
        }
    }
    if (best_end < 0) return {};
    return {best_end, n - 1 - best_end};
}

}  // namespace strata
