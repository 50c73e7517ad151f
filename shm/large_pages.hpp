// shm/large_pages.hpp -- gives shared memory pages of 2 MiB where the kernel has them.
//
// A page of 4 KiB costs its mapper, and a process that dies with it mapped, some 100 ns: of a
// segment of 70 MiB that is 10 ms of each takeover, and every scan over it misses the TLB besides.
// The kernel is asked for large pages explicitly (MADV_COLLAPSE, Linux 6.1), whatever it gives by
// itself (transparent_hugepage/shmem_enabled: nothing by default). Where it has none, 4 KiB pages
// stay.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace dibs::shm {

inline constexpr uint64_t kLargePage = uint64_t{2} << 20U;

// Address space that begins where a large page may, to be mapped over with MAP_FIXED. Throws
// std::system_error.
std::byte* reserve_aligned(uint64_t size);

// Gives a memfd of that size its pages, zeroed, as many of them large as can be had; the rest is
// still to be allocated. Before it is sealed, and best while it is empty.
void give_large_pages(int memfd, uint64_t size);

}  // namespace dibs::shm
