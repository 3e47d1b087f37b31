#pragma once

#include <string>

#include "decode/switches.h"
#include "trace/event.h"

namespace strata {

inline std::string finish_name(Finish finish) {
    static const char* names[] = {"", "stop", "length", "context", "cancel", "error"};
    return names[static_cast<int>(finish)];
}

/// "mtp", "lookup", "none" or "replay:Q".
std::string draft_name(DraftSource source, float quality);
/// Throws Error on another text, or a Q outside 0 .. 1.
std::pair<DraftSource, float> parse_draft(const std::string& text);

}  // namespace strata
