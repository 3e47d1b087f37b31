#include "base/memory.h"

#include <algorithm>
#include <fstream>
#include <optional>

namespace strata {

/// The number behind `name` in a file of lines "name number ..", or the file's first word where name is
/// empty.
static std::optional<uint64_t> number_in(const std::string& path, const std::string& name = "") {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        if (line.rfind(name, 0) != 0) continue;
        try {
            return std::stoull(line.substr(name.size()));
        } catch (const std::exception&) {  // "max"
            return std::nullopt;
        }
    }
    return std::nullopt;
}

/// What a group leaves: its limit less what is taken, but for pages of files that nobody uses.
static uint64_t left_in(const std::string& folder, const char* limit, const char* usage, const char* unused) {
    const auto most = number_in(folder + limit), taken = number_in(folder + usage);
    if (!most || !taken) return UINT64_MAX;
    const uint64_t kept = *taken - std::min(*taken, number_in(folder + "/memory.stat", unused).value_or(0));
    return *most - std::min(*most, kept);
}

/// Of the group and of those around it: each may have a limit.
static uint64_t left_in_groups(const std::string& root) {
    uint64_t left = UINT64_MAX;
    std::ifstream groups(root + "/proc/self/cgroup");
    std::string line;
    while (std::getline(groups, line)) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string kinds = line.substr(first + 1, second - first - 1);
        if (!kinds.empty() && kinds != "memory") continue;
        const std::string top = root + "/sys/fs/cgroup" + (kinds.empty() ? "" : "/memory");
        std::string path = line.substr(second + 1);
        for (;;) {
            while (!path.empty() && path.back() == '/') path.pop_back();
            const std::string folder = top + path;
            left = std::min(left, kinds.empty()
                                      ? left_in(folder, "/memory.max", "/memory.current", "inactive_file ")
                                      : left_in(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                                "total_inactive_file "));
            if (path.empty()) break;
            path.erase(path.rfind('/'));
        }
    }
    return left;
}

uint64_t available_memory(const std::string& root) {
    const auto kib = number_in(root + "/proc/meminfo", "MemAvailable:");
    return std::min(kib ? *kib * 1024 : UINT64_MAX, left_in_groups(root));
}

}  // namespace strata
