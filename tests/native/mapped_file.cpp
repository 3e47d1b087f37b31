#include "base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "check.h"

using namespace strata;

namespace {

/// Whoever handled SIGBUS before any file was mapped: here, since before main.
volatile sig_atomic_t passed_on = 0;
const bool handled = [] {
    struct sigaction action{};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
        passed_on = passed_on + 1;
        if (info->si_code > 0) signal(SIGBUS, SIG_DFL);  // a page: this is the end
    };
    return sigaction(SIGBUS, &action, nullptr) == 0;
}();

/// A file of `size` bytes of 7 that goes with the object.
struct TemporaryFile {
    std::string path = "/tmp/strata_mapped_XXXXXX";
    explicit TemporaryFile(size_t size) {
        const int fd = ::mkstemp(path.data());
        const std::vector<char> bytes(size, 7);
        CHECK(::write(fd, bytes.data(), size) == static_cast<ssize_t>(size));
        ::close(fd);
    }
    ~TemporaryFile() { std::remove(path.c_str()); }
    void resize(size_t size) const { CHECK(::truncate(path.c_str(), static_cast<off_t>(size)) == 0); }
};

int sum_of(const MappedFile& file) {
    int sum = 0;
    for (uint8_t byte : file.bytes()) sum += byte;
    return sum;
}

}  // namespace

TEST(mapped_file_that_is_left_alone) {
    TemporaryFile on_disk(100'001);
    MappedFile file(on_disk.path);
    MappedFile moved(std::move(file));
    CHECK_EQ(sum_of(moved), 7 * 100'001);
    CHECK(!moved.changed());
    CHECK(!file.changed());
}

TEST(mapped_file_that_is_shortened_reads_as_zeros_and_says_so) {
    TemporaryFile on_disk(300'000), other(300'000);
    MappedFile file(on_disk.path), untouched(other.path);
    on_disk.resize(100);
    CHECK_EQ(sum_of(file), 7 * 100);
    CHECK(file.changed());
    CHECK_EQ(sum_of(untouched), 7 * 300'000);
    CHECK(!untouched.changed());
    on_disk.resize(300'000);  // grown back: what was read in between was not the file
    CHECK(file.changed());
}

TEST(mapped_file_shortened_within_its_last_page_says_so_too) {
    TemporaryFile on_disk(300'000);
    MappedFile file(on_disk.path);
    on_disk.resize(299'999);  // no page is missing: no signal
    CHECK_EQ(sum_of(file), 7 * 299'999);
    CHECK(file.changed());
}

TEST(mapped_file_written_in_place_has_changed) {
    TemporaryFile on_disk(5000);
    struct stat status{};
    CHECK(::stat(on_disk.path.c_str(), &status) == 0);
    MappedFile file(on_disk.path);
    const timespec later[2] = {{status.st_mtime + 5, 0}, {status.st_mtime + 5, 0}};
    CHECK(::utimensat(AT_FDCWD, on_disk.path.c_str(), later, 0) == 0);
    CHECK(file.changed());
}

TEST(mapped_files_come_and_go) {
    TemporaryFile first(50'000), second(50'000);
    for (int i = 0; i < 100; ++i) {
        MappedFile a(first.path), b(second.path);
        CHECK(!a.changed() && !b.changed());
    }
    MappedFile a(first.path);
    MappedFile b(second.path);
    second.resize(1);
    CHECK_EQ(sum_of(b), 7);
    CHECK(b.changed() && !a.changed());
}

TEST(mapped_files_survive_signals_that_are_somebody_else_s) {
    CHECK(handled);
    TemporaryFile on_disk(300'000);
    MappedFile file(on_disk.path);
    const int before = passed_on;
    for (int i = 1; i <= 3; ++i) {
        CHECK(::raise(SIGBUS) == 0);
        CHECK_EQ(passed_on - before, i);
    }
    on_disk.resize(100);
    CHECK_EQ(sum_of(file), 7 * 100);
    CHECK(file.changed());
    CHECK_EQ(passed_on - before, 3);
}
