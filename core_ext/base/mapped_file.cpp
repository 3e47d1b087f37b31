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
}

MappedFile::~MappedFile() {
    if (data_) ::munmap(const_cast<uint8_t*>(data_), size_bytes_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
}

}  // namespace strata
