#pragma once

#include <cstdint>
#include <string>

namespace strata {

/// Bytes that this process can still take without swapping, or without being ended for a limit of its control
/// group (a container's); UINT64_MAX where nothing tells. `root`: tests, of the file system.
uint64_t available_memory(const std::string& root = "");

}  // namespace strata
