// benchmarks/state_memory.cpp -- memory for a core's STATE, as a broker has it.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/state_memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "shm/large_pages.hpp"
#include "shm/memfd.hpp"

namespace dibs::bench {

StateMemory::StateMemory(uint64_t size) {
    const shm::Descriptor fd = shm::make_memfd("dibs-bench-state", size, shm::Pages::kLarge);
    void* const at = mmap(shm::reserve_aligned(size),
                          size,
                          PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                          fd.get(),
                          0);
    if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    bytes_ = {static_cast<std::byte*>(at), size};
}

StateMemory::~StateMemory() {
    (void)munmap(bytes_.data(), bytes_.size());
}

}  // namespace dibs::bench
