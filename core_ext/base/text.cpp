#include "base/text.h"

#include <cstdint>
#include <cstdio>

namespace strata {

bool is_utf8(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
        const auto lead = static_cast<uint8_t>(text[i++]);
        if (lead < 0x80) continue;
        const int rest = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
        if (lead < 0xC2 || lead > 0xF4 || text.size() - i < static_cast<size_t>(rest)) return false;
        const auto next = static_cast<uint8_t>(text[i]);
        if ((lead == 0xE0 && next < 0xA0) || (lead == 0xED && next > 0x9F) || (lead == 0xF0 && next < 0x90) ||
            (lead == 0xF4 && next > 0x8F))
            return false;
        for (int k = 0; k < rest; ++k)
            if ((static_cast<uint8_t>(text[i++]) & 0xC0) != 0x80) return false;
    }
    return true;
}

std::string shown(std::string_view text, size_t limit) {
    std::string out;
    for (const char c : text.substr(0, limit)) out += static_cast<uint8_t>(c) < 0x20 || c == 0x7F ? '?' : c;
    const bool cut = text.size() > limit;
    for (int i = 0; cut && i < 3 && !is_utf8(out); ++i)
        out.pop_back();  // it may have been cut within a character
    if (!is_utf8(out)) return "(not UTF-8)";
    return cut ? out + ".." : out;
}

std::string number_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.7g", value);
    return text;
}

}  // namespace strata
