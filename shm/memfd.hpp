// shm/memfd.hpp -- makes anonymous shared memory, seals its size and shares it.
//
// Order matters. fchmod 0600 comes before any descriptor leaves the process: another user who
// reopens a read-only descriptor through /proc for writing then gets EACCES. Pages are allocated
// before the seals, so that a full memory shows here and not as a fault in the middle of a claim.
// The seals fix the size for ever; they do not forbid writing, because the broker's successor
// must be able to map the segment again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shm/descriptor.hpp"

namespace dibs::shm {

enum class Pages {
    kSmall,
    kLarge,  // where the kernel has them (shm/large_pages.hpp)
};

// All of these throw std::system_error.
// Sized, populated, sealed, mode 0600.
Descriptor make_memfd(const char* name, uint64_t size, Pages pages = Pages::kSmall);
// The same for an empty one from elsewhere.
void size_and_seal(int memfd, uint64_t size, Pages pages = Pages::kSmall);
// A description of its own, which the kernel counts as one that opened the file: not so the first
// one (broker/session/leftovers.hpp).
Descriptor reopen_read_only(int memfd);
Descriptor reopen_for_writing(int memfd);
uint64_t size_of(int fd);

}  // namespace dibs::shm
