// shm/lines.hpp -- whole lines of memory that are this process's alone: a STATE of a tool's own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "shm/layout.hpp"

namespace dibs::shm {

// Whole lines on a line's boundary, zeroed.
class Lines {
  public:
    Lines() = default;
    explicit Lines(uint64_t size) : Lines(Room{(size + kLineSize - 1) / kLineSize * kLineSize}) {
        clear();
    }
    Lines(const Lines& other) : Lines(Room{other.size_}) { copy(other); }
    Lines& operator=(const Lines& other) {
        if (this == &other) return *this;
        if (size_ != other.size_) *this = Lines(Room{other.size_});
        copy(other);
        return *this;
    }
    Lines(Lines&& other) noexcept
        : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
    Lines& operator=(Lines&& other) noexcept {
        memory_ = std::move(other.memory_);
        size_ = std::exchange(other.size_, 0);
        return *this;
    }
    ~Lines() = default;

    [[nodiscard]] std::span<std::byte> bytes() const { return {memory_.get(), size_}; }
    void clear() {
        if (size_ > 0) std::memset(memory_.get(), 0, size_);
    }

  private:
    struct Room {
        size_t size;
    };
    struct Free {
        void operator()(std::byte* memory) const {
            ::operator delete (memory, std::align_val_t{kLineSize});
        }
    };

    explicit Lines(Room room)
        : memory_(static_cast<std::byte*>(::operator new (room.size, std::align_val_t{kLineSize}))),
          size_(room.size) {}
    void copy(const Lines& other) {
        if (size_ > 0) std::memcpy(memory_.get(), other.memory_.get(), size_);
    }

    std::unique_ptr<std::byte, Free> memory_;
    size_t size_ = 0;
};

}  // namespace dibs::shm
