#pragma once

#include <map>
#include <string>
#include <vector>

namespace strata {

/// Cores that this process may use, ascending. Never empty.
std::vector<int> usable_cores();
/// Cores by NUMA node; empty where the system does not tell.
std::map<int, std::vector<int>> numa_nodes();
/// The processor's name, or "".
std::string cpu_model();
/// Pins the calling thread. False where the system can't or refuses.
bool pin_thread(const std::vector<int>& cores);
/// The calling thread goes on as soon as what it waits for is there, as near as the system can: timed sleeps
/// end in time (Linux adds 50 us otherwise), and it goes before threads that have computed for a while.
void wake_promptly();
/// Where cores are short, the calling thread has less of them than others have.
void make_way();

}  // namespace strata
