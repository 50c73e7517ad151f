// broker/ctl/worker/forerunners.cpp -- ends the trees of dead runners, and divides a group.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/forerunners.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "broker/admission/peer.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/session/control_group.hpp"

namespace dibs::ctl::worker {

namespace {

constexpr int kKilledWithinMs = 10'000;

bool is_dead_runners(const std::string& name) {
    int pid = 0;
    unsigned long long start = 0;
    if (std::sscanf(name.c_str(), "dibs-runner-%d-%llu", &pid, &start) != 2 || pid <= 0)
        return false;
    const shm::Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd.valid()) return errno == ESRCH;
    if (is_dead(pidfd.get())) return true;  // nobody has waited for it yet
    const uint64_t started = process_start_time(static_cast<uint32_t>(pid));
    return started != 0 && started != start;
}

void end_left(const std::filesystem::path& folder) {
    const TreeLeaf left(folder);
    if (left.events() < 0 || !left.is_populated()) return;  // gone, or as soon as `left` is
    talk("dibs-runner: an earlier runner has left " + shown_running(left.processes()) +
         ": that is ended");
    left.kill();
    if (left.await_empty(kKilledWithinMs)) return;
    throw Failure(
        kExitOwnFailure,
        "what an earlier runner has left, KILL has not ended: " + shown_running(left.processes()) +
            " in " + folder.string() + "; nothing is started beside it");
}

bool write_word(const std::string& file, const std::string& word) {
    const shm::Descriptor fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
    return fd.valid() &&
           write(fd.get(), word.data(), word.size()) == static_cast<ssize_t>(word.size());
}

bool has_word(const std::string& file, const std::string& word) {
    std::ifstream words(file);
    for (std::string one; words >> one;) {
        if (one == word) return true;
    }
    return false;
}

}  // namespace

std::unique_ptr<TreeLeaf> make_runner_tree(std::string* why) {
    const std::string group = control_group_of("self", why);
    if (group.empty()) return nullptr;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(group, gone)) {
        if (is_dead_runners(entry.path().filename())) end_left(entry.path());
    }
    const uint64_t start = process_start_time(static_cast<uint32_t>(getpid()));
    auto tree = TreeLeaf::make("runner", why, "-" + std::to_string(start));
    return tree && tree->lets_in(why) ? std::move(tree) : nullptr;
}

std::string enable_controller(const TreeLeaf& tree, const std::string& controller, pid_t guard) {
    const std::string above = tree.folder().substr(0, tree.folder().rfind('/'));
    if (!has_word(above + "/cgroup.controllers", controller)) {
        return "control group " + above + " has no controller \"" + controller +
               "\": in a service, Delegate=yes gives it";
    }
    const std::string on = "+" + controller;
    const std::string below = "/cgroup.subtree_control";
    if (!write_word(above + below, on) && errno == EBUSY) {
        const std::string own = tree.folder() + "-self";
        (void)mkdir(own.c_str(), 0755);
        for (const pid_t process : {getpid(), guard})
            (void)write_word(own + "/cgroup.procs", std::to_string(process));
        (void)write_word(above + below, on);
    }
    if (has_word(tree.folder() + "/cgroup.controllers", controller) &&
        write_word(tree.folder() + below, on)) {
        return "";
    }
    return "controller \"" + controller + "\" cannot be given to groups below " + above +
           ", where other processes may be: " + std::strerror(errno);
}

}  // namespace dibs::ctl::worker
