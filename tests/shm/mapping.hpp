// tests/shm/mapping.hpp -- a memfd, mapped as often as a test likes: every mapping of it is at an
// address of its own, as in two processes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <stdexcept>

namespace dibs::test {

class SharedMemory {
  public:
    explicit SharedMemory(size_t size)
        : size_(size), descriptor_(memfd_create("dibs-test", MFD_CLOEXEC)) {
        if (descriptor_ < 0 || ftruncate(descriptor_, static_cast<off_t>(size)) != 0) {
            throw std::runtime_error("memfd");
        }
    }
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;
    ~SharedMemory() { close(descriptor_); }

    [[nodiscard]] size_t size() const { return size_; }
    [[nodiscard]] int descriptor() const { return descriptor_; }

  private:
    size_t size_;
    int descriptor_;
};

class Mapping {
  public:
    explicit Mapping(const SharedMemory& memory, int protection = PROT_READ | PROT_WRITE)
        : size_(memory.size()),
          address_(mmap(nullptr, size_, protection, MAP_SHARED, memory.descriptor(), 0)) {
        if (address_ == MAP_FAILED) throw std::runtime_error("mmap");
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() { munmap(address_, size_); }

    template <typename T>
    [[nodiscard]] T* as(size_t offset = 0) const {
        return reinterpret_cast<T*>(static_cast<std::byte*>(address_) + offset);
    }

  private:
    size_t size_;
    void* address_;
};

}  // namespace dibs::test
