// shm/large_pages.cpp -- gives shared memory pages of 2 MiB where the kernel has them.
// SPDX-License-Identifier: Apache-2.0
#include "shm/large_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace dibs::shm {

namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE: glibc has no name for it before 2.37

}  // namespace

std::byte* reserve_aligned(uint64_t size) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const size_t used = (size + page - 1) / page * page;
    const size_t room = used + kLargePage;
    void* const reserved =
        mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    auto* const first = static_cast<std::byte*>(reserved);
    const size_t before =
        (kLargePage - reinterpret_cast<uintptr_t>(first) % kLargePage) % kLargePage;
    if (before != 0) (void)munmap(first, before);
    (void)munmap(first + before + used, kLargePage - before);
    return first + before;
}

void give_large_pages(int memfd, uint64_t size) {
    const uint64_t whole = size / kLargePage * kLargePage;
    if (whole == 0) return;
    // Where there is nothing at all the kernel gives none; one small page is enough.
    for (uint64_t at = 0; at < whole; at += kLargePage) {
        if (fallocate(memfd, 0, static_cast<off_t>(at), 1) != 0) return;  // the caller's to say
    }
    std::byte* const at = reserve_aligned(whole);
    if (mmap(at, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd, 0) != MAP_FAILED) {
        (void)madvise(at, whole, kCollapse);  // its result is not needed
    }
    (void)munmap(at, whole);
}

}  // namespace dibs::shm
