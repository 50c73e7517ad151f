// benchmarks/peer.cpp -- a second process that answers while it is asked to.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peer.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include "benchmarks/placement.hpp"
#include "shm/futex.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kResting = 0;
constexpr uint32_t kRunning = 1;
constexpr uint64_t kLongWait = 1'000'000'000;

// Leaves the child to a later waitpid().
bool has_ended(pid_t child) {
    siginfo_t end = {};
    return waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           end.si_pid == child;
}

// `other` is the child that is to write the word; 0 = the parent, whose death ends this process.
void await(const std::atomic<uint32_t>& word, uint32_t wanted, pid_t other = 0) {
    for (;;) {
        const uint32_t seen = word.load(std::memory_order_acquire);  // pairs with tell()
        if (seen == wanted) return;
        if (other != 0 && has_ended(other)) throw std::runtime_error("a peer has ended");
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

Peer::Peer(int cpu, const std::function<void(const Running& running)>& answer, int second_cpu)
    : memory_(sizeof(Words)), words_(new (memory_.at<std::byte>(0)) Words{}) {
    pid_ = fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        pin(cpu, second_cpu);
        live(answer);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "dibs-bench: %s\n", error.what());
        _exit(1);
    }
}

void Peer::live(const std::function<void(const Running& running)>& answer) {
    for (;;) {
        await(words_->asked, kRunning);
        tell(words_->is, kRunning);
        answer(Running(words_->asked));
        await(words_->asked, kResting);
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
    await(words_->is, state, pid_);
}

void Peer::start() {
    ask(kRunning);
}
void Peer::stop() {
    ask(kResting);
}

}  // namespace dibs::bench
