#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace strata {

struct MappedRange;

/// A regular file mapped read-only. The bytes live as long as the object.
///
/// Whoever shortens the file in the meantime takes bytes away. Reading those would end the process (SIGBUS);
/// instead they read as zeros from then on, and `changed()` says so: whoever computes from the bytes asks it
/// before the result is used.
class MappedFile {
  public:
    MappedFile() = default;
    /// Throws Error if the file cannot be opened, is no regular file or is empty.
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;

    std::span<const uint8_t> bytes() const { return {data_, size_bytes_}; }
    /// True once bytes were missing when they were read, and while the file's size or time of change is not
    /// what it was when it was opened. One system call.
    bool changed() const;

  private:
    int fd_ = -1;
    const uint8_t* data_ = nullptr;
    size_t size_bytes_ = 0;
    int64_t changed_ns_ = 0;  // the file's time of last change, as opened
    MappedRange* range_ = nullptr;
};

}  // namespace strata
