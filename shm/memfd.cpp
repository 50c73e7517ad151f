// shm/memfd.cpp -- makes anonymous shared memory, seals its size and shares it.
// SPDX-License-Identifier: Apache-2.0
#include "shm/memfd.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "shm/large_pages.hpp"

namespace dibs::shm {

namespace {

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

// A process that has the file open and may lease it could keep an open() waiting; O_NONBLOCK has no
// other effect on memory files.
Descriptor reopen(int memfd, int access) {
    const std::string path = "/proc/self/fd/" + std::to_string(memfd);
    Descriptor reopened(open(path.c_str(), access | O_CLOEXEC | O_NONBLOCK));
    if (!reopened.valid()) fail("reopening a memfd through /proc/self/fd");
    return reopened;
}

}  // namespace

Descriptor make_memfd(const char* name, uint64_t size, Pages pages) {
    Descriptor memfd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memfd.valid()) fail("memfd_create");
    size_and_seal(memfd.get(), size, pages);
    return memfd;
}

void size_and_seal(int memfd, uint64_t size, Pages pages) {
    if (fchmod(memfd, 0600) != 0) fail("fchmod of a memfd");
    const auto bytes = static_cast<off_t>(size);
    if (ftruncate(memfd, bytes) != 0) fail("ftruncate of a memfd");
    if (pages == Pages::kLarge) give_large_pages(memfd, size);
    if (fallocate(memfd, 0, 0, bytes) != 0) fail("fallocate of a memfd");
    if (fcntl(memfd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
        fail("sealing a memfd");
    }
}

Descriptor reopen_read_only(int memfd) {
    return reopen(memfd, O_RDONLY);
}

Descriptor reopen_for_writing(int memfd) {
    return reopen(memfd, O_RDWR);
}

uint64_t size_of(int fd) {
    struct stat about = {};
    if (fstat(fd, &about) != 0) fail("fstat");
    return static_cast<uint64_t>(about.st_size);
}

}  // namespace dibs::shm
