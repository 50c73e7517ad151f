// tests/process/tracer.cpp -- a thread of another process, from one system call to the next.
// SPDX-License-Identifier: Apache-2.0
#include "tests/process/tracer.hpp"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace dibs::test {

namespace {

constexpr int kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC;
constexpr int kOfCall = SIGTRAP | 0x80;

void* number(long value) {
    return reinterpret_cast<void*>(value);
}

// Of a stop: whether a signal is what it is about.
int signal_of(int status) {
    const int signal = WSTOPSIG(status);
    return (status >> 16) != 0 || signal == kOfCall ? 0 : signal;
}

}  // namespace

std::optional<Tracer> Tracer::of_child(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) return std::nullopt;
    (void)ptrace(PTRACE_SETOPTIONS, pid, nullptr, number(kOptions));
    return Tracer(pid);
}

std::optional<Tracer> Tracer::of_running(pid_t tid) {
    if (ptrace(PTRACE_SEIZE, tid, nullptr, number(kOptions)) != 0) return std::nullopt;
    (void)ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
    int status = 0;
    (void)waitpid(tid, &status, __WALL);
    return Tracer(tid);
}

Tracer::Tracer(Tracer&& other) noexcept
    : tid_(std::exchange(other.tid_, -1)), signal_(other.signal_) {}

Tracer::~Tracer() {
    let_go();
}

std::optional<int> Tracer::go_on(int request) {
    const int signal = std::exchange(signal_, 0);
    if (ptrace(static_cast<__ptrace_request>(request), tid_, nullptr, number(signal)) != 0 &&
        errno != ESRCH) {
        return std::nullopt;
    }
    int status = 0;
    if (waitpid(tid_, &status, __WALL) != tid_ || !WIFSTOPPED(status)) {
        tid_ = -1;
        return std::nullopt;
    }
    signal_ = signal_of(status);
    return status >> 8;
}

std::optional<Call> Tracer::next() {
    while (const auto stop = go_on(PTRACE_SYSCALL)) {
        if (*stop != kOfCall) continue;
        struct __ptrace_syscall_info info = {};
        (void)ptrace(PTRACE_GET_SYSCALL_INFO, tid_, number(sizeof(info)), &info);
        Call call;
        call.begins = info.op == PTRACE_SYSCALL_INFO_ENTRY;
        if (!call.begins) return call;
        call.number = info.entry.nr;
        for (size_t i = 0; i < call.arguments.size(); ++i)
            call.arguments[i] = info.entry.args[i];
        return call;
    }
    return std::nullopt;
}

std::optional<Tracer> Tracer::next_child() {
    (void)ptrace(PTRACE_SETOPTIONS,
                 tid_,
                 nullptr,
                 number(kOptions | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE));
    while (const auto stop = go_on(PTRACE_CONT)) {
        const int event = *stop >> 8;
        if (event != PTRACE_EVENT_VFORK && event != PTRACE_EVENT_FORK &&
            event != PTRACE_EVENT_CLONE) {
            continue;
        }
        unsigned long child = 0;
        (void)ptrace(PTRACE_GETEVENTMSG, tid_, nullptr, &child);
        int status = 0;
        (void)waitpid(static_cast<pid_t>(child), &status, __WALL);
        // It has its parent's options: a thread of its own would stand still before it begins.
        (void)ptrace(PTRACE_SETOPTIONS, static_cast<pid_t>(child), nullptr, number(kOptions));
        return Tracer(static_cast<pid_t>(child));
    }
    return std::nullopt;
}

uint64_t Tracer::peek(uint64_t address) const {
    return static_cast<uint64_t>(
        ptrace(PTRACE_PEEKDATA, tid_, number(static_cast<long>(address)), nullptr));
}

std::optional<KeeperMessage> Tracer::said(const Call& call) const {
    if (!call.begins || call.number != SYS_sendmsg) return std::nullopt;
    const uint64_t part = peek(call.arguments[1] + offsetof(struct msghdr, msg_iov));
    const uint64_t from = peek(part + offsetof(struct iovec, iov_base));
    if (peek(part + offsetof(struct iovec, iov_len)) != sizeof(KeeperMessage)) return std::nullopt;
    KeeperMessage message;
    for (size_t at = 0; at < sizeof(message); at += sizeof(uint64_t)) {
        const uint64_t word = peek(from + at);
        std::memcpy(reinterpret_cast<std::byte*>(&message) + at, &word, sizeof(word));
    }
    if (message.magic != kKeeperMagic) return std::nullopt;
    return message;
}

void Tracer::kill() {
    if (tid_ < 0) return;
    (void)::kill(tid_, SIGKILL);
    int status = 0;
    while (waitpid(tid_, &status, __WALL) == tid_ && !WIFSIGNALED(status) && !WIFEXITED(status)) {
    }
    tid_ = -1;
}

void Tracer::let_go() {
    if (tid_ < 0) return;
    (void)ptrace(PTRACE_DETACH, tid_, nullptr, number(signal_));
    tid_ = -1;
}

}  // namespace dibs::test
