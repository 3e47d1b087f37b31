#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace strata {

/// `count` zeroed elements, 64-byte aligned, owned. Large buffers come as untouched zero pages: memory that
/// is never written is never paid for.
template <typename T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(size_t count) : count_(count) {
        if (count == 0) return;
        if (count > (SIZE_MAX - 63) / sizeof(T)) throw std::bad_alloc();
        raw_ = std::calloc(count * sizeof(T) + 63, 1);
        if (!raw_) throw std::bad_alloc();
        data_ = reinterpret_cast<T*>((reinterpret_cast<size_t>(raw_) + 63) & ~size_t{63});
    }
    ~Buffer() { std::free(raw_); }
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        swap(other);
        return *this;
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    size_t size() const { return count_; }
    size_t size_bytes() const { return count_ * sizeof(T); }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }

  private:
    void swap(Buffer& other) {
        std::swap(raw_, other.raw_);
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
    }
    void* raw_ = nullptr;
    T* data_ = nullptr;
    size_t count_ = 0;
};

}  // namespace strata
