// broker/segments/mapping.hpp -- maps a segment into the broker: shared, and a whole descriptor.
//
// Only the broker's side uses it; the client library maps by itself and needs libc alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "shm/large_pages.hpp"

namespace dibs {

class Mapping {
  public:
    // Which pages exist at once. A page fault costs more than a claim, so normally all do; but
    // where a client waits for the first of many mappings, those that are looked at come first, one
    // by one, and touch() sees to the rest.
    enum class Pages { kAll, kFew };

    Mapping() = default;
    // Maps `size` bytes for reading and writing. Throws std::system_error.
    Mapping(int fd, uint64_t size, Pages pages = Pages::kAll) try
        : region_(Handle{fd},
                  boost::interprocess::read_write,
                  0,
                  static_cast<size_t>(size),
                  size < shm::kLargePage ? nullptr : shm::reserve_aligned(size),
                  (pages == Pages::kAll ? MAP_POPULATE : 0) |
                      (size < shm::kLargePage ? 0 : MAP_FIXED)) {
    } catch (const boost::interprocess::interprocess_exception& error) {
        throw std::system_error(error.get_native_error(), std::generic_category(), "mmap");
    }

    // Brings all pages that are not there yet. From any thread; what cannot be had faults later.
    void touch() const {
        constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14
        (void)madvise(region_.get_address(), region_.get_size(), kPopulateWrite);
    }

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
