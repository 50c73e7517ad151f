// broker/ctl/worker/guard.cpp -- sends group numbers over a pipe, negative for ended groups.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>

#include "broker/ctl/system_failure.hpp"
#include "broker/ctl/tree/tree_leaf.hpp"

namespace dibs::ctl::worker {

namespace {

// Keeps the pipe alone: not the worker's descriptors, whose ends other processes wait for.
void keep_only(int fd) {
    dup2(fd, STDIN_FILENO);
    (void)syscall(SYS_close_range, 1U, ~0U, 0U);
}

// The control group is opened while the worker lives, so it is the worker's and none of its name.
void watch(int fd, const std::string& folder) {
    setsid();
    prctl(PR_SET_NAME, "dibs-guard");
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    keep_only(fd);
    const auto tree = folder.empty() ? nullptr : std::make_unique<TreeLeaf>(folder);
    std::set<pid_t> groups;
    for (;;) {
        pid_t word = 0;
        const ssize_t size = read(STDIN_FILENO, &word, sizeof word);
        if (size < 0 && errno == EINTR) continue;
        if (size != sizeof word) break;
        if (word > 0) {
            groups.insert(word);
        } else {
            groups.erase(-word);
        }
    }
    for (const pid_t group : groups)
        kill(-group, SIGKILL);
    if (tree != nullptr) tree->kill();
}

}  // namespace

Guard::Guard(std::string tree) : tree_(std::move(tree)) {
    start();
}

Guard::~Guard() {
    give_up();
}

void Guard::start() {
    give_up();
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw system_failure("pipe");
    const shm::Descriptor reading(ends[0]);
    shm::Descriptor writing(ends[1]);
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ < 0) throw system_failure("fork");
    if (pid_ == 0) {
        writing.reset();
        watch(reading.get(), tree_);
        _exit(0);
    }
    pipe_ = std::move(writing);
    for (const pid_t group : groups_)
        tell(group);
}

void Guard::give_up() {
    pipe_.reset();
    reap();
}

void Guard::reap() {
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

// A word is written as a whole, and the guard only reads. If the guard was killed the write fails:
// the next one learns all groups.
void Guard::tell(pid_t word) const {
    while (write(pipe_.get(), &word, sizeof word) < 0 && errno == EINTR) {
    }
}

}  // namespace dibs::ctl::worker
