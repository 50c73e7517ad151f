// broker/takeover/standby.cpp -- starts, checks and drops the standby broker for the keeper.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/standby.hpp"

#include <signal.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "broker/takeover/head_start.hpp"
#include "broker/text/log.hpp"
#include "broker/text/shortage.hpp"

namespace dibs {

namespace {

// Clients that have waited for a takeover come first.
constexpr uint64_t kAfterNs = 100'000'000;
constexpr uint64_t kPauseNs = 1'000'000'000;
constexpr uint64_t kPauseMaxNs = 64'000'000'000;
constexpr int kDeathMs = 1'000;  // of one that is killed, until its pidfd says so
constexpr uint64_t kLookEveryNs = 10'000'000'000;
constexpr uint64_t kMoreFor = 8;       // an eighth
constexpr uint64_t kGrownBy = 4;       // a quarter more than then
constexpr uint64_t kGrownKib = 1'024;  // and so much

// And what only a takeover needs.
uint64_t memory_of(const Process& process) {
    const pid_t pid = pid_of(process.pidfd()).value_or(0);
    const uint64_t now = own_memory_kib(pid);
    return std::min(now + now / kMoreFor, Standby::kMemoryMaxKib);
}

}  // namespace

void Standby::plan(uint64_t now_ns) {
    pause_ns_ = 0;
    if (process_.pidfd() < 0) due_ns_ = now_ns + kAfterNs;
}

void Standby::start(const OwnProgram& program,
                    bool replaced,
                    const Process& like,
                    uint64_t now_ns) {
    settle();
    due_ns_ = shm::kNever;
    started_ns_ = now_ns;
    look_ns_ = now_ns + kLookEveryNs;
    kib_ = memory_of(like);
    OwnProgram ahead = program;
    ahead.options.insert(ahead.options.end(), {"--ahead", std::to_string(kib_)});
    try {
        file_ = program.file(replaced);  // another one that is put there meanwhile is not this one
        auto [own, others] = KeeperSocket::make_pair();
        process_ = replaced ? Process::start(ahead, "--link", others.get())
                            : Process::start_own(ahead, "--link", others.get());
        socket_ = KeeperSocket(std::move(own));
    } catch (const std::system_error& error) {
        if (pause_ns_ == 0) {
            log::warning("no broker can be started ahead, a takeover will take longer: " +
                         with_limits(error));
        }
        try_later(now_ns);
    }
}

void Standby::try_later(uint64_t now_ns) {
    pause_ns_ = pause_ns_ == 0 ? kPauseNs : std::min(2 * pause_ns_, kPauseMaxNs);
    due_ns_ = now_ns + pause_ns_;
}

void Standby::look(const Process& like, uint64_t now_ns) {
    if (process_.pidfd() < 0 || now_ns < look_ns_) return;
    look_ns_ = now_ns + kLookEveryNs;
    if (memory_of(like) <= kib_ + kib_ / kGrownBy + kGrownKib) return;
    let_go();
    due_ns_ = now_ns + kAfterNs;  // it has ended by then
}

std::optional<Process::Ending> Standby::ended(uint64_t now_ns) {
    process_.kill_group();  // whatever the program at the path is
    const std::optional<Process::Ending> ending = process_.ending();
    process_ = Process();
    socket_.reset();
    if (now_ns - started_ns_ > pause_ns_) pause_ns_ = 0;
    try_later(now_ns);
    return ending;
}

std::optional<Standby::Started> Standby::take(const OwnProgram& program, bool replaced) {
    due_ns_ = shm::kNever;
    if (process_.pidfd() < 0) return std::nullopt;
    const std::optional<ProgramFile> wanted = program.file(replaced);
    if (!wanted || wanted != file_ || process_.dead() || process_.stopped()) {
        let_go();
        return std::nullopt;
    }
    return Started{std::exchange(process_, Process()), std::exchange(socket_, KeeperSocket())};
}

void Standby::let_go() {
    due_ns_ = shm::kNever;
    if (process_.pidfd() < 0) return;
    settle();  // there is hardly ever one
    process_.signal(SIGKILL);
    process_.kill_group();
    leaving_ = std::exchange(process_, Process());
    socket_.reset();
}

void Standby::settle() {
    if (leaving_.pidfd() < 0) return;
    (void)leaving_.await_death(kDeathMs);
    (void)leaving_.ending();
    leaving_ = Process();
}

}  // namespace dibs
