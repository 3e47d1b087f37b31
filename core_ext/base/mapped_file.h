#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace strata {

/// A regular file mapped read-only. The bytes live as long as the object; whoever shortens the file in the
/// meantime takes them away.
class MappedFile {
  public:
    MappedFile() = default;
    /// Throws Error if the file cannot be opened, is no regular file or is empty.
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;

    std::span<const uint8_t> bytes() const { return {data_, size_bytes_}; }

  private:
    const uint8_t* data_ = nullptr;
    size_t size_bytes_ = 0;
};

}  // namespace strata
