// tests/crash/store_trap.cpp -- two signals for each instruction that writes.
// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/store_trap.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdlib>

namespace dibs::tests {

namespace {

// A handler has no argument of ours, so the one trap that there is stands here.
std::span<std::byte> guarded;
StoreTrap::Stored call = nullptr;
[[maybe_unused]] const void* writing = nullptr;
struct sigaction faults_before;
struct sigaction traps_before;

void protect(int how) {
    if (mprotect(guarded.data(), guarded.size(), how) != 0) std::abort();
}

#if defined(__x86_64__)

constexpr greg_t kTraceFlag = 0x100;

greg_t& its(void* context, int part) {
    return static_cast<ucontext_t*>(context)->uc_mcontext.gregs[part];
}

void on_fault(int /*signal*/, siginfo_t* fault, void* context) {
    const auto* at = static_cast<std::byte*>(fault->si_addr);
    if (at < guarded.data() || at >= guarded.data() + guarded.size()) {
        sigaction(
            SIGSEGV, &faults_before, nullptr);  // not ours: it comes again, and ends the program
        return;
    }
    writing = reinterpret_cast<const void*>(its(context, REG_RIP));  // NOLINT
    protect(PROT_READ | PROT_WRITE);
    its(context, REG_EFL) |= kTraceFlag;
}

void on_trap(int /*signal*/, siginfo_t* /*trap*/, void* context) {
    its(context, REG_EFL) &= ~kTraceFlag;
    call(writing);
    protect(PROT_READ);
}

void handle() {
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &action, &faults_before);
    action.sa_sigaction = on_trap;
    sigaction(SIGTRAP, &action, &traps_before);
}

#else

void handle() {
    std::abort();
}

#endif

}  // namespace

StoreTrap::StoreTrap(std::span<std::byte> memory, Stored stored) {
    guarded = memory;
    call = stored;
    handle();
}

StoreTrap::~StoreTrap() {
    disarm();
    sigaction(SIGSEGV, &faults_before, nullptr);
    sigaction(SIGTRAP, &traps_before, nullptr);
}

void StoreTrap::arm() {
    protect(PROT_READ);
}

void StoreTrap::disarm() {
    protect(PROT_READ | PROT_WRITE);
}

}  // namespace dibs::tests
