// tests/sim/actors.cpp -- what any process does: it connects, and it ends.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/actors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "clientlib/session.hpp"

namespace dibs::sim {

namespace {

// What the kernel does with a process that is gone. The broker hears of it by the lifeline alone.
void close_behind(client::Session& session) {
    for (const int fd : {session.poll, session.socket, session.bell, session.events})
        close(fd);
    munmap(session.up, shm::plan_up(session.sizes).size);
    munmap(const_cast<shm::DownHead*>(session.down), shm::plan_down(session.sizes).size);
    munmap(const_cast<std::byte*>(session.board), session.board_size);
    munmap(session.private_memory, session.private_size);
}

}  // namespace

Actor::Actor(Scene& scene, uint32_t process) : scene_(scene), process_(process) {
    if (pipe2(lifeline_, O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
    struct stat about = {};
    if (fstat(lifeline_[0], &about) != 0) std::abort();
    inode_ = about.st_ino;
}

Actor::~Actor() {
    for (const int end : lifeline_)
        close(end);
}

void Actor::start() {
    const auto cpu = static_cast<uint32_t>(dice().below(3));
    task_ = scene_.world.start("process " + std::to_string(process_), cpu, [this] {
        try {
            if (connect()) live();
        } catch (const Killed&) {
        }
        bury();
    });
    task_->lifeline = lifeline_[0];
    task_->lifeline_inode = inode_;
    task_->uid = uid();
}

void Actor::kill() {
    task_->doomed = true;
}

bool Actor::connect() {
    dibs_connect_options options = {};
    options.size = sizeof options;
    options.socket_path = "simulated";
    options.submission_entries = 8U << dice().below(3);
    options.completion_entries = options.submission_entries * (2U << dice().below(2));
    if (options.completion_entries < 64) options.completion_entries = 64;
    options.up_payload = 4096;
    options.down_payload = 4096U << dice().below(2);
    options.leases_max = 8U << dice().below(2);
    options.spin_us = dice().below(2) == 0 ? -1 : 5;
    for (;;) {
        doing("connecting");
        task_->shielded = true;  // a death in here is one before, or behind it
        const int code = dibs_connect(&options, &session_);
        task_->shielded = false;
        if (code == DIBS_OK) return true;
        expect(code == DIBS_ENOBROKER || code == DIBS_ELIMIT,
               std::string("connecting ends with ") + dibs_strerror(code));
        scene_.world.pass(1'000'000 + dice().below(20'000'000));
    }
}

void Actor::bury() {
    task_->shielded = true;  // it is dead already
    scene_.ledger.died(process_);
    if (session_ != nullptr) close_behind(*session_);
    session_ = nullptr;
    (void)!::write(lifeline_[1], "", 1);
    scene_.world.stir();
}

bool Actor::over(int code) {
    if (code != DIBS_ESESSION && code != DIBS_EBROKERLOST) return false;
    ++scene_.seen["session lost"];
    expect(scene_.loud_deaths,
           std::string("its session ends (") + dibs_strerror(dibs_end_code(session_)) +
               ") although it did nothing wrong and no broker died of it");
    return true;
}

void Actor::expect(bool holds, const std::string& what) {
    if (!holds) scene_.ledger.wrong("process " + std::to_string(process_) + ": " + what);
}

void Actor::doing(const std::string& what) {
    doing_ = what;
    doing_since_ = now();
}

}  // namespace dibs::sim
