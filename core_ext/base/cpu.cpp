#include "base/cpu.h"

#include <fstream>
#include <sstream>
#include <thread>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
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

/// "0-3,8" as the kernel writes lists of cores.
static std::vector<int> parse_core_list(const std::string& text) {
    std::vector<int> cores;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        int first = 0, last = 0;
        char dash = 0;
        std::istringstream range(part);
        if (!(range >> first)) continue;
        if (!(range >> dash >> last)) last = first;
        for (int core = first; core <= last; ++core) cores.push_back(core);
    }
    return cores;
}

std::map<int, std::vector<int>> numa_nodes() {
    std::map<int, std::vector<int>> nodes;
    std::ifstream online("/sys/devices/system/node/online");
    std::string list;
    if (!std::getline(online, list)) return nodes;
    for (int node : parse_core_list(list)) {
        std::ifstream file("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
        std::string cores;
        if (std::getline(file, cores)) nodes[node] = parse_core_list(cores);
    }
    return nodes;
}

std::string cpu_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.rfind("model name", 0) == 0) {
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
    prctl(PR_SET_TIMERSLACK, 1UL);  // nanoseconds
#endif
}

}  // namespace strata
