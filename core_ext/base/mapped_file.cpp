#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/mapped_range.h"
#include "base/text.h"

namespace strata {

namespace {

struct Descriptor {
    int fd;
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
};

[[noreturn]] void fail(const std::string& path, const std::string& why) {
    throw Error("[open] " + shown(path, 1000) + ": " + why);
}

int64_t time_of_change_ns(const struct stat& status) {
#ifdef __APPLE__
    const timespec& time = status.st_mtimespec;
#else
    const timespec& time = status.st_mtim;
#endif
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
    // Non-blocking: a named pipe without a writer would otherwise hang here, before it can be refused.
    Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.fd < 0) fail(path, std::strerror(errno));
    struct stat status{};
    if (::fstat(file.fd, &status) != 0) fail(path, std::strerror(errno));
    if (S_ISDIR(status.st_mode)) fail(path, "is a folder, expected a file");
    if (!S_ISREG(status.st_mode)) fail(path, "is not a regular file");
    if (status.st_size == 0) fail(path, "is empty");
    if (static_cast<uint64_t>(status.st_size) > std::numeric_limits<size_t>::max())
        fail(path, "is larger than the address space");
    const size_t size = static_cast<size_t>(status.st_size);
    void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (mapping == MAP_FAILED) fail(path, std::string("cannot be mapped: ") + std::strerror(errno));
    data_ = static_cast<const uint8_t*>(mapping);
    size_bytes_ = size;
    changed_ns_ = time_of_change_ns(status);
    range_ = MappedRange::watch(data_, size);
    fd_ = std::exchange(file.fd, -1);
}

MappedFile::~MappedFile() {
    if (range_) range_->forget();
    if (data_) ::munmap(const_cast<uint8_t*>(data_), size_bytes_);
    if (fd_ >= 0) ::close(fd_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(changed_ns_, other.changed_ns_);
    std::swap(range_, other.range_);
    return *this;
}

bool MappedFile::changed() const {
    if (!data_) return false;
    struct stat status{};
    return range_->lost() || ::fstat(fd_, &status) != 0 ||
           static_cast<uint64_t>(status.st_size) != size_bytes_ || time_of_change_ns(status) != changed_ns_;
}

}  // namespace strata
