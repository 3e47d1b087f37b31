#pragma once

#include <string>
#include <string_view>

namespace strata {

/// UTF-8 without overlong forms and surrogates (RFC 3629).
bool is_utf8(std::string_view text);

/// Text from outside within a message: control characters replaced, cut after `limit` bytes.
std::string shown(std::string_view text, size_t limit = 80);

/// A number for messages, without digits that a float does not have.
std::string number_text(double value);

}  // namespace strata
