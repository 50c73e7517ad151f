// tests/fuzz/plain_segments.cpp -- plain memory in the place of segments, and numbers in the place
// of bells, for targets that make a broker's part anew for each input.
//
// The linker gives these targets our calls; what is not about one of our numbers goes on to the
// kernel, which would take most of an execution to make, map and unmap shared memory. Memory is
// zeroed when it is made, as the kernel's is (a STATE's log as far as it was used), and of its
// exact size, so that the address sanitizer guards its end.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "shm/layout.hpp"
#include "tests/fuzz/bytes.hpp"
#include "tests/fuzz/put_back.hpp"

namespace {

using dibs::fuzz::expect;

constexpr int kFirst = 1 << 20;  // no descriptor of this process is so large
constexpr std::align_val_t kAlign{4096};

struct Thing {
    std::byte* memory = nullptr;  // of a segment
    size_t size = 0;
    bool open = false;
    bool mapped = false;
};
std::array<Thing, 64> things;

bool ours(int fd) {
    return fd >= kFirst && fd < kFirst + static_cast<int>(things.size());
}

Thing& thing(int fd) {
    return things[static_cast<size_t>(fd - kFirst)];
}

int make() {
    for (size_t i = 0; i < things.size(); ++i) {
        if (things[i].open || things[i].mapped) continue;
        things[i].open = true;
        return kFirst + static_cast<int>(i);
    }
    expect(false, "what an input opens is closed again");
    return -1;
}

// What these targets write into a STATE goes through a core.
bool is_state(std::span<const std::byte> memory) {
    if (memory.size() < sizeof(dibs::shm::StateHead)) return false;
    const auto* head = reinterpret_cast<const dibs::shm::StateHead*>(memory.data());
    return head->magic == dibs::shm::kStateMagic && head->size == memory.size();
}

// Of a segment that is gone, where one had this size.
void give_memory(Thing& to, size_t size) {
    expect(!to.mapped, "a segment's size is fixed before it is mapped");
    for (Thing& other : things) {
        if (to.size == size) break;
        if (other.size != size || other.open || other.mapped) continue;
        std::swap(to.memory, other.memory);
        std::swap(to.size, other.size);
    }
    if (to.size != size) {
        if (to.memory != nullptr) operator delete(to.memory, kAlign);
        to.memory = static_cast<std::byte*>(operator new(size, kAlign));
        to.size = size;
        std::memset(to.memory, 0, size);
        return;
    }
    const std::span<std::byte> memory(to.memory, size);
    if (is_state(memory)) {
        dibs::fuzz::put_back(memory);
    } else {
        std::memset(to.memory, 0, size);
    }
}

}  // namespace

extern "C" {

int __real_close(int fd);
int __real_fallocate64(int fd, int mode, off_t from, off_t size);
int __real_fchmod(int fd, mode_t mode);
int __real_fcntl64(int fd, int what, long argument);
int __real_ftruncate64(int fd, off_t size);
void* __real_mmap64(void* at, size_t size, int protection, int flags, int fd, off_t from);
int __real_munmap(void* at, size_t size);
int __real_open64(const char* path, int flags, mode_t mode);
ssize_t __real_read(int fd, void* to, size_t size);
ssize_t __real_send(int fd, const void* bytes, size_t size, int flags);
ssize_t __real_write(int fd, const void* bytes, size_t size);

int __wrap_memfd_create(const char*, unsigned) {
    return make();
}

int __wrap_eventfd(unsigned, int) {
    return make();
}

int __wrap_socketpair(int, int, int, int* pair) {
    pair[0] = make();
    pair[1] = make();
    return 0;
}

int __wrap_open64(const char* path, int flags, ...) {
    if (std::string_view(path).starts_with("/proc/self/fd/")) return make();  // to be handed out
    va_list list;
    va_start(list, flags);
    const auto mode = static_cast<mode_t>(va_arg(list, int));
    va_end(list);
    return __real_open64(path, flags, mode);
}

int __wrap_close(int fd) {
    if (!ours(fd)) return __real_close(fd);
    expect(thing(fd).open, "what is closed was open");
    thing(fd).open = false;
    return 0;
}

int __wrap_ftruncate64(int fd, off_t size) {
    if (!ours(fd)) return __real_ftruncate64(fd, size);
    give_memory(thing(fd), static_cast<size_t>(size));
    return 0;
}

int __wrap_fallocate64(int fd, int mode, off_t from, off_t size) {
    return ours(fd) ? 0 : __real_fallocate64(fd, mode, from, size);
}

int __wrap_fchmod(int fd, mode_t mode) {
    return ours(fd) ? 0 : __real_fchmod(fd, mode);
}

int __wrap_fcntl64(int fd, int what, ...) {
    va_list list;
    va_start(list, what);
    const long argument = va_arg(list, long);
    va_end(list);
    return ours(fd) ? 0 : __real_fcntl64(fd, what, argument);
}

void* __wrap_mmap64(void* at, size_t size, int protection, int flags, int fd, off_t from) {
    if (!ours(fd)) return __real_mmap64(at, size, protection, flags, fd, from);
    Thing& segment = thing(fd);
    expect(at == nullptr && from == 0 && size <= segment.size,
           "a segment is mapped from its start");
    segment.mapped = true;
    return segment.memory;
}

int __wrap_munmap(void* at, size_t size) {
    for (Thing& segment : things) {
        if (!segment.mapped || segment.memory != at) continue;
        segment.mapped = false;
        return 0;
    }
    return __real_munmap(at, size);
}

ssize_t __wrap_read(int fd, void* to, size_t size) {
    if (!ours(fd)) return __real_read(fd, to, size);
    std::memset(to, 0, size);
    return static_cast<ssize_t>(size);
}

ssize_t __wrap_write(int fd, const void* bytes, size_t size) {
    return ours(fd) ? static_cast<ssize_t>(size) : __real_write(fd, bytes, size);
}

ssize_t __wrap_send(int fd, const void* bytes, size_t size, int flags) {
    return ours(fd) ? static_cast<ssize_t>(size) : __real_send(fd, bytes, size, flags);
}
}
