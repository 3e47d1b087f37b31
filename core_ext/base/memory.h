#pragma once

#include <cstdint>

namespace strata {

/// Bytes that the system can give without swapping; UINT64_MAX where it does not tell.
uint64_t available_memory();

}  // namespace strata
