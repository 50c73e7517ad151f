// broker/takeover/head_start.cpp -- prepares a standby broker before it takes over.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/head_start.hpp"

#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <string>

#include "shm/descriptor.hpp"
#include "shm/large_pages.hpp"

namespace dibs {

namespace {

#if defined(__GLIBC__)
// glibc's own, in mallopt(3).
constexpr int kMappedMax = 65'536;
constexpr int kTrimAt = 128 * 1024;
constexpr int kNeverTrim = 1 << 30;

void keep_freed_memory(bool keep) {
    (void)mallopt(M_MMAP_MAX, keep ? 0 : kMappedMax);
    (void)mallopt(M_TRIM_THRESHOLD, keep ? kNeverTrim : kTrimAt);
}
#else
void keep_freed_memory(bool /*keep*/) {}
int malloc_trim(size_t /*pad*/) {
    return 0;
}
#endif

void advise_whole_pages(volatile std::byte* bytes, size_t size, int advice) {
    const auto from = reinterpret_cast<uintptr_t>(bytes);
    const uintptr_t first = (from + shm::kLargePage - 1) / shm::kLargePage * shm::kLargePage;
    const uintptr_t end = (from + size) / shm::kLargePage * shm::kLargePage;
    if (first < end) (void)madvise(reinterpret_cast<void*>(first), end - first, advice);
}

size_t page_size() {
    return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

uint64_t own_memory_kib(pid_t pid) {
    std::ifstream about("/proc/" + std::to_string(pid) + "/statm");
    uint64_t size = 0;
    uint64_t resident = 0;
    uint64_t shared = 0;
    if (!(about >> size >> resident >> shared) || shared > resident) return 0;
    return (resident - shared) * page_size() / 1024;
}

TouchedMemory::TouchedMemory(uint64_t kib) {
    const uint64_t own = own_memory_kib(getpid());
    const size_t size = kib > own ? (kib - own) * 1024 : 0;
    const size_t page = page_size();
    keep_freed_memory(true);
    auto* bytes = static_cast<volatile std::byte*>(std::malloc(size));
    if (bytes == nullptr) return;
    // Large pages, where the kernel gives them at once: fewer pages are faster to find in a
    // takeover, and faster to take down before a death is reported. The kernel makes no large page
    // later by itself.
    advise_whole_pages(bytes, size, MADV_HUGEPAGE);
    for (size_t at = 0; at < size; at += page)
        bytes[at] = std::byte{};
    advise_whole_pages(bytes, size, MADV_NOHUGEPAGE);
    std::free(const_cast<std::byte*>(bytes));
}

TouchedMemory::~TouchedMemory() {
    keep_freed_memory(false);
}

void give_back_memory() {
    (void)malloc_trim(0);
}

void name_process(const char* name) {
    (void)prctl(PR_SET_NAME, name);
}

void end_with_keeper(bool end) {
    (void)prctl(PR_SET_PDEATHSIG, end ? SIGKILL : 0);
}

// The signals stay blocked throughout. A process that passes a signal on has sent its message
// before, so the link is looked at once more when a signal comes.
bool await_begin(int link) {
    sigset_t taken;
    pthread_sigmask(SIG_BLOCK, nullptr, &taken);
    const shm::Descriptor signals(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    std::array<struct pollfd, 2> on = {{{link, POLLIN, 0}, {signals.get(), POLLIN, 0}}};
    while (poll(on.data(), on.size(), -1) < 0 && errno == EINTR) {
    }
    if (on[0].revents == 0) (void)poll(on.data(), 1, 0);
    std::byte first{};  // of its word: a hang-up is readable, too, and has none
    return on[0].revents != 0 && recv(link, &first, sizeof(first), MSG_PEEK | MSG_DONTWAIT) > 0;
}

}  // namespace dibs
