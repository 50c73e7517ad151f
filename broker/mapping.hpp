// broker/mapping.hpp -- a segment in the broker's memory: a shared mapping of a whole descriptor.
//
// Only the broker's side uses it; the client library maps by itself and needs libc alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <boost/interprocess/mapped_region.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

#include "shm/large_pages.hpp"

namespace dibs {

class Mapping {
  public:
    Mapping() = default;
    // Maps `size` bytes for reading and writing and touches every page: a page fault costs more
    // than a claim. Throws boost::interprocess::interprocess_exception or std::system_error.
    Mapping(int fd, uint64_t size)
        : region_(Handle{fd},
                  boost::interprocess::read_write,
                  0,
                  static_cast<size_t>(size),
                  size < shm::kLargePage ? nullptr : shm::reserve_aligned(size),
                  size < shm::kLargePage ? MAP_POPULATE : MAP_POPULATE | MAP_FIXED) {}

    [[nodiscard]] std::span<std::byte> bytes() const {
        return {static_cast<std::byte*>(region_.get_address()), region_.get_size()};
    }
    template <typename T>
    [[nodiscard]] T* at(uint64_t offset) const {
        return reinterpret_cast<T*>(static_cast<std::byte*>(region_.get_address()) + offset);
    }

  private:
    struct Handle {  // what mapped_region asks of a thing that can be mapped
        int fd;
        [[nodiscard]] boost::interprocess::mapping_handle_t get_mapping_handle() const {
            return boost::interprocess::ipcdetail::mapping_handle_from_file_handle(fd);
        }
    };
    boost::interprocess::mapped_region region_;
};

}  // namespace dibs
