// shm/lines.hpp -- private memory in whole cache lines, for a tool's own STATE.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "shm/layout.hpp"

namespace dibs::shm {

// Whole lines on a line's boundary, zeroed: by the kernel where the memory is fresh, so that pages
// that are never written need not exist.
class Lines {
  public:
    Lines() = default;
    explicit Lines(uint64_t size) : size_((size + kLineSize - 1) / kLineSize * kLineSize) {
        // No more where it is aligned, as under a sanitizer, which then sees accesses beyond it.
        take(size_);
        if (misplaced() != 0) {
            take(size_ + kLineSize - 1);
            first_ += (kLineSize - misplaced()) % kLineSize;
        }
    }
    Lines(const Lines& other) : Lines(other.size_) { copy(other); }
    Lines& operator=(const Lines& other) {
        if (this == &other) return *this;
        if (size_ != other.size_) *this = Lines(other.size_);
        copy(other);
        return *this;
    }
    Lines(Lines&& other) noexcept
        : memory_(std::move(other.memory_)),
          first_(std::exchange(other.first_, nullptr)),
          size_(std::exchange(other.size_, 0)) {}
    Lines& operator=(Lines&& other) noexcept {
        memory_ = std::move(other.memory_);
        first_ = std::exchange(other.first_, nullptr);
        size_ = std::exchange(other.size_, 0);
        return *this;
    }
    ~Lines() = default;

    [[nodiscard]] std::span<std::byte> bytes() const { return {first_, size_}; }
    void clear() {
        if (size_ > 0) std::memset(first_, 0, size_);
    }

  private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };

    void take(size_t room) {
        memory_.reset(room == 0 ? nullptr : std::calloc(1, room));
        if (room != 0 && memory_ == nullptr) throw std::bad_alloc();
        first_ = static_cast<std::byte*>(memory_.get());
    }
    [[nodiscard]] size_t misplaced() const {
        return reinterpret_cast<uintptr_t>(first_) % kLineSize;
    }
    void copy(const Lines& other) {
        if (size_ > 0) std::memcpy(first_, other.first_, size_);
    }

    std::unique_ptr<void, Free> memory_;
    std::byte* first_ = nullptr;
    size_t size_ = 0;
};

}  // namespace dibs::shm
