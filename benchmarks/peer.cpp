// benchmarks/peer.cpp -- a second process that answers while it is asked to.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peer.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>

#include "benchmarks/placement.hpp"
#include "shm/futex.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kResting = 0;
constexpr uint32_t kRunning = 1;
constexpr uint64_t kLongWait = 1'000'000'000;

void await(const std::atomic<uint32_t>& word, uint32_t wanted) {
    for (;;) {
        const uint32_t seen = word.load(std::memory_order_acquire);  // pairs with tell()
        if (seen == wanted) return;
        shm::futex_wait(word, seen, kLongWait);
    }
}

void tell(std::atomic<uint32_t>& word, uint32_t value) {
    word.store(value, std::memory_order_release);  // pairs with await(), Running
    shm::futex_wake(word, 1);
}

}  // namespace

SharedMemory::SharedMemory(size_t size) : size_(size) {
    void* memory = mmap(
        nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    bytes_ = static_cast<std::byte*>(memory);
}

SharedMemory::~SharedMemory() {
    munmap(bytes_, size_);
}

struct Peer::Words {
    alignas(64) std::atomic<uint32_t> asked;  // writer: this process
    alignas(64) std::atomic<uint32_t> is;     // writer: the peer
};

Peer::Running::operator bool() const {
    return state_.load(std::memory_order_acquire) == kRunning;
}

Peer::Peer(int cpu, const std::function<void(const Running& running)>& answer)
    : memory_(sizeof(Words)), words_(new (memory_.at<std::byte>(0)) Words{}) {
    pid_ = fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) live(cpu, answer);
}

void Peer::live(int cpu, const std::function<void(const Running& running)>& answer) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(cpu);
    for (;;) {
        await(words_->asked, kRunning);
        tell(words_->is, kRunning);
        answer(Running(words_->asked));
        tell(words_->is, kResting);
    }
}

Peer::~Peer() {
    (void)kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void Peer::ask(uint32_t state) {
    tell(words_->asked, state);
    await(words_->is, state);
}

void Peer::start() {
    ask(kRunning);
}
void Peer::stop() {
    ask(kResting);
}

}  // namespace dibs::bench
