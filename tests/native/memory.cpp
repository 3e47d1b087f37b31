#include "base/memory.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "check.h"

namespace strata::test {

namespace fs = std::filesystem;

struct Root {
    fs::path path = fs::temp_directory_path() / ("strata-memory-" + std::to_string(::getpid()));
    ~Root() { fs::remove_all(path); }
    void write(const std::string& file, const std::string& text) const {
        fs::create_directories((path / file).parent_path());
        std::ofstream(path / file) << text;
    }
    uint64_t available() const { return available_memory(path.string()); }
};

TEST(memory_is_what_the_system_and_every_group_around_leave) {
    const Root root;
    CHECK_EQ(root.available(), UINT64_MAX);
    root.write("proc/meminfo", "MemTotal: 99 kB\nMemAvailable:   42 kB\n");
    CHECK_EQ(root.available(), 42u * 1024);
    root.write("proc/self/cgroup", "0::/box/inner\n");
    root.write("sys/fs/cgroup/box/inner/memory.max", "max\n");
    root.write("sys/fs/cgroup/box/inner/memory.current", "5000\n");
    CHECK_EQ(root.available(), 42u * 1024);
    root.write("sys/fs/cgroup/box/memory.max", "20000\n");
    root.write("sys/fs/cgroup/box/memory.current", "9000\n");
    root.write("sys/fs/cgroup/box/memory.stat", "anon 1\ninactive_file 2000\n");
    CHECK_EQ(root.available(), 13'000u);
    root.write("sys/fs/cgroup/box/memory.current", "30000\n");
    CHECK_EQ(root.available(), 0u);
    // The older hierarchy.
    root.write("proc/self/cgroup", "9:cpu:/box\n4:memory:/box\n");
    root.write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712\n");
    root.write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "7000\n");
    CHECK_EQ(root.available(), 42u * 1024);
    root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "8000\n");
    root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "7000\n");
    root.write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 500\n");
    CHECK_EQ(root.available(), 1'500u);
    root.write("proc/meminfo", "MemAvailable: rather much\n");
    CHECK_EQ(root.available(), 1'500u);
}

}  // namespace strata::test
