// demo/floors.cpp -- measures what a claim's time is compared with on this machine.
// `dibs demo-floors`, hidden, prints one line of JSON.
// Of two rounds the better one counts: other load makes a floor worse, never better.
//
//   ring        an entry to another process and one back through the rings of shm/ring.hpp, both
//               sides spinning: the least that a claim can cost
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
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "broker/journal/json_text.hpp"
#include "demo/demo.hpp"
#include "demo/instant.hpp"
#include "shm/ring.hpp"

namespace dibs::ctl::demo {

namespace {

constexpr int kRounds = 2;                 // of each; a caller that repeats takes the best of all
constexpr uint64_t kOverNs = 200'000'000;  // no round takes longer
constexpr uint32_t kSpins = 20'000;        // looks before a side gives way
constexpr uint32_t kThere = 128;           // entries, as a session has by default
constexpr uint32_t kBack = 256;
constexpr size_t kBeyond = 10;  // so many times lie beyond a printed quantile

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

// The peer's side of the rings: an answer for each entry.
[[noreturn]] void echo(const shm::SubmissionEntry* there, shm::CompletionEntry* back) {
    const Place place(true);
    shm::SubmissionConsumer asked(there, kThere, 0);
    shm::CompletionProducer answers(back, kBack, 0);
    shm::Submission question;
    shm::Completion answer;
    for (uint32_t looks = 0;; ++looks) {
        if (asked.pop(question) != shm::Poll::kEntry) {
            if (looks >= kSpins) sched_yield();
            continue;
        }
        answer.user_data = question.user_data;
        // One is under way at a time: what was pushed before has been read.
        (void)answers.release_to(answers.tail());
        answers.push(answer);
        looks = 0;
    }
}

std::vector<uint64_t> ring_times() {
    constexpr size_t kSize = (kThere + kBack) * shm::kLineSize;
    void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    auto* there = static_cast<shm::SubmissionEntry*>(memory);
    auto* back = reinterpret_cast<shm::CompletionEntry*>(static_cast<std::byte*>(memory) +
                                                         kThere * shm::kLineSize);
    std::vector<uint64_t> times;
    {
        const Peer peer([there, back] { echo(there, back); });
        const Place place(false);
        shm::SubmissionProducer questions(there, kThere, 0);
        shm::CompletionConsumer answers(back, kBack, 0);
        shm::Submission question;
        shm::Completion answer;
        times = times_of(20'000, [&] {
            (void)questions.release_to(questions.tail());
            ++question.user_data;
            questions.push(question);
            for (uint32_t looks = 0; answers.pop(answer) != shm::Poll::kEntry; ++looks) {
                if (looks >= kSpins) sched_yield();
            }
        });
    }
    munmap(memory, kSize);
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
    auto times = times_of(10'000, [&] {
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
    return times_of(100, [&] {
        pid_t pid = 0;
        if (posix_spawn(&pid, name, nullptr, nullptr, command, environ) != 0) return;
        waitpid(pid, nullptr, 0);
    });
}

void tell(JsonText* text, const char* name, const std::vector<uint64_t>& times) {
    text->open_object(name);
    text->number("count", times.size());
    const auto at = [&](std::string_view key, size_t thousandths) {
        const size_t place = times.size() * thousandths / 1000;
        if (times.size() < place + kBeyond) return text->nothing(key);
        text->number(key, times[place]);
    };
    at("p50_ns", 500);
    at("p99_ns", 990);
    at("p999_ns", 999);
    text->close_object();
}

}  // namespace

}  // namespace dibs::ctl::demo

int dibs::ctl::run_demo_floors(int /*argc*/, char** /*argv*/) {
    using namespace dibs::ctl::demo;
    JsonText text;
    text.open_object();
    tell(&text, "ring", ring_times());
    tell(&text, "socket", socket_times());
    tell(&text, "fork_exec", fork_exec_times());
    text.close_object();
    std::printf("%s\n", text.line().c_str());
    return 0;
}
