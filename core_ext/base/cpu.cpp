#include "base/cpu.h"

#include <charconv>
#include <cstdio>
#include <memory>
#include <string_view>
#include <thread>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace strata {

std::vector<int> usable_cores() {
    std::vector<int> cores;
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        for (int core = 0; core < CPU_SETSIZE; ++core)
            if (CPU_ISSET(core, &set)) cores.push_back(core);
#endif
    if (cores.empty()) {
        const int count = std::max(1u, std::thread::hardware_concurrency());
        for (int core = 0; core < count; ++core) cores.push_back(core);
    }
    return cores;
}

/// The lines of one of the system's small text files; none where there is no such file.
static std::vector<std::string> lines_of(const std::string& path) {
    // C's files: the module is loaded beside others that may bring a C++ library of their own, whose streams
    // and locales do not always go together with ours.
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "r"),
                                                     [](FILE* f) { return f ? std::fclose(f) : 0; });
    std::vector<std::string> lines(1);
    for (int c; file && (c = std::fgetc(file.get())) != EOF;) {
        if (c == '\n')
            lines.emplace_back();
        else
            lines.back() += static_cast<char>(c);
    }
    return lines;
}

/// "0-3,8" as the kernel writes lists of cores.
static std::vector<int> parse_core_list(std::string_view text) {
    std::vector<int> cores;
    const char *at = text.data(), *end = at + text.size();
    while (at < end) {
        int first = 0;
        const auto [after, status] = std::from_chars(at, end, first);
        if (status != std::errc()) break;
        int last = first;
        at = after;
        if (at < end && *at == '-') at = std::from_chars(at + 1, end, last).ptr;
        for (int core = first; core <= last; ++core) cores.push_back(core);
        if (at < end && *at != ',') break;
        ++at;
    }
    return cores;
}

std::map<int, std::vector<int>> numa_nodes() {
    const std::string nodes_at = "/sys/devices/system/node/";
    std::map<int, std::vector<int>> nodes;
    for (int node : parse_core_list(lines_of(nodes_at + "online")[0]))
        nodes[node] = parse_core_list(lines_of(nodes_at + "node" + std::to_string(node) + "/cpulist")[0]);
    return nodes;
}

std::string cpu_model() {
    for (const std::string& line : lines_of("/proc/cpuinfo"))
        if (line.starts_with("model name")) {
            const size_t colon = line.find(": ");
            return colon == std::string::npos ? "" : line.substr(colon + 2);
        }
    return "";
}

bool pin_thread(const std::vector<int>& cores) {
    if (cores.empty()) return true;
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int core : cores)
        if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
#else
    return false;
#endif
}

void wake_promptly() {
#ifdef __linux__
    prctl(PR_SET_TIMERSLACK, 1UL);                     // nanoseconds
    if (sched_getscheduler(0) != SCHED_OTHER) return;  // chrt: as its user wants it
    // sched_setattr(2), which C libraries have only lately. A slice of 0.1 ms, the shortest, lets a thread
    // that wakes go before one that computes; systems before Linux 6.12 ignore it, and nothing hangs on it.
    struct {
        uint32_t size = sizeof(*this), policy = SCHED_OTHER;
        uint64_t flags = 0;
        int32_t nice = getpriority(PRIO_PROCESS, 0);
        uint32_t priority = 0;
        uint64_t slice_ns = 100'000, deadline_ns = 0, period_ns = 0;
    } attributes;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
}

void make_way() {
#ifdef __linux__
    const int nice = getpriority(PRIO_PROCESS, 0);  // the thread's
    setpriority(PRIO_PROCESS, 0, nice + 5);         // a third of the share
#endif
}

}  // namespace strata
