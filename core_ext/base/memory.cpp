#include "base/memory.h"

#include <cstdio>

namespace strata {

uint64_t available_memory() {
    std::FILE* file = std::fopen("/proc/meminfo", "r");
    if (!file) return UINT64_MAX;
    char line[128];
    unsigned long long kib = UINT64_MAX;
    bool found = false;
    while (!found && std::fgets(line, sizeof line, file))
        found = std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1;
    std::fclose(file);
    return found ? kib * 1024 : UINT64_MAX;
}

}  // namespace strata
