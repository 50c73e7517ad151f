// broker/ctl/demo/floors.cpp -- `dibs demo-floors`, hidden: what a claim's time is compared with,
// on this machine, now. One line of JSON. Of ten rounds the best one counts: other load makes a
// floor worse, never better.
//
//   line        a cache line to another process and one back, both spinning: no claim can be faster
//   socket      64 bytes to another process over a UNIX socket and 64 back
//   fork_exec   a new process, from fork to its end: what a cold start costs at least
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "broker/ctl/demo/demo.hpp"
#include "broker/ctl/json_text.hpp"

namespace dibs::ctl::demo {

namespace {

constexpr int kRounds = 10;
constexpr uint64_t kOverNs = 200'000'000;  // no round takes longer
constexpr uint32_t kSpins = 20'000;        // looks before a side gives way

uint64_t monotonic_ns() {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Puts this process on the first or the second of the CPUs that it may use, while there are two.
class Place {
  public:
    explicit Place(bool second) {
        sched_getaffinity(0, sizeof before_, &before_);
        if (CPU_COUNT(&before_) < 2) return;
        size_t cpu = 0;
        for (int skip = second ? 1 : 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &before_) && skip-- == 0) break;
        }
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { sched_setaffinity(0, sizeof before_, &before_); }

  private:
    cpu_set_t before_;
};

// The other side of a floor; it goes with this process, and with this object.
class Peer {
  public:
    explicit Peer(const std::function<void()>& body) : pid_(fork()) {
        if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
        if (pid_ > 0) return;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body();
        _exit(0);
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }

  private:
    pid_t pid_;
};

// Times of one call after the other, sorted.
std::vector<uint64_t> round_of(size_t count, const std::function<void()>& once) {
    std::vector<uint64_t> times;
    const uint64_t over = monotonic_ns() + kOverNs;
    for (size_t i = 0; i < count; ++i) {
        const uint64_t before = monotonic_ns();
        if (before >= over) break;
        once();
        times.push_back(monotonic_ns() - before);
    }
    std::sort(times.begin(), times.end());
    return times;
}

std::vector<uint64_t> times_of(size_t count, const std::function<void()>& once) {
    std::vector<uint64_t> best;
    for (int round = 0; round < kRounds; ++round) {
        std::vector<uint64_t> times = round_of(count, once);
        const auto middle = [](const std::vector<uint64_t>& sorted) {
            return sorted.empty() ? UINT64_MAX : sorted[sorted.size() / 2];
        };
        if (middle(times) < middle(best)) best = std::move(times);
    }
    return best;
}

struct Lines {
    alignas(64) std::atomic<uint64_t> there{0};  // pairs with `back`: each side stores its own
    alignas(64) std::atomic<uint64_t> back{0};
};

void await(const std::atomic<uint64_t>& word, uint64_t value) {
    for (uint32_t looks = 0; word.load(std::memory_order_acquire) != value; ++looks) {
        if (looks >= kSpins) sched_yield();
    }
}

std::vector<uint64_t> line_times() {
    void* memory =
        mmap(nullptr, sizeof(Lines), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    auto* lines = new (memory) Lines;
    std::vector<uint64_t> times;
    {
        const Peer peer([lines] {
            const Place place(true);
            for (uint64_t next = 1;; ++next) {
                await(lines->there, next);
                lines->back.store(next, std::memory_order_release);
            }
        });
        const Place place(false);
        uint64_t next = 0;
        times = times_of(2'000, [&] {
            lines->there.store(++next, std::memory_order_release);
            await(lines->back, next);
        });
    }
    munmap(memory, sizeof(Lines));
    return times;
}

std::vector<uint64_t> socket_times() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::system_error(errno, std::generic_category(), "socketpair");
    }
    std::array<char, 64> packet{};
    const Peer peer([&] {
        while (read(ends[1], packet.data(), packet.size()) > 0)
            (void)!write(ends[1], packet.data(), packet.size());
    });
    auto times = times_of(1'000, [&] {
        (void)!write(ends[0], packet.data(), packet.size());
        (void)!read(ends[0], packet.data(), packet.size());
    });
    close(ends[0]);
    close(ends[1]);
    return times;
}

std::vector<uint64_t> fork_exec_times() {
    char name[] = "/bin/true";
    char* const command[] = {name, nullptr};
    return times_of(20, [&] {
        pid_t pid = 0;
        if (posix_spawn(&pid, name, nullptr, nullptr, command, environ) != 0) return;
        waitpid(pid, nullptr, 0);
    });
}

void tell(JsonText* text, const char* name, const std::vector<uint64_t>& times) {
    text->open_object(name);
    const auto at = [&](uint64_t thousandths) {
        return times.empty() ? 0
                             : times[std::min(times.size() - 1, times.size() * thousandths / 1000)];
    };
    text->number("count", times.size());
    text->number("p50_ns", at(500));
    text->number("p99_ns", at(990));
    text->number("p999_ns", at(999));
    text->close_object();
}

}  // namespace

}  // namespace dibs::ctl::demo

int dibs::ctl::run_demo_floors(int /*argc*/, char** /*argv*/) {
    using namespace dibs::ctl::demo;
    JsonText text;
    text.open_object();
    tell(&text, "line", line_times());
    tell(&text, "socket", socket_times());
    tell(&text, "fork_exec", fork_exec_times());
    text.close_object();
    std::printf("%s\n", text.line().c_str());
    return 0;
}
