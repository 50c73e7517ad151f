// broker/ctl/worker/ground.cpp -- makes the control group, the guard and the notify folder.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/ground.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "broker/admission/peer.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/worker/forerunners.hpp"

namespace dibs::ctl::worker {

namespace {

// What is left of all processes is this one's by and by, where it is the subreaper. Waits for what
// it can kill, not for what another user runs. SIGCHLD is blocked.
void end_descendants() {
    TreeLeaf("").kill();
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    const timespec longest = {1, 0};
    for (;;) {
        const pid_t child = waitpid(-1, nullptr, WNOHANG);
        if (child < 0) return;
        if (child == 0 && sigtimedwait(&ended, nullptr, &longest) < 0) return;
    }
}

}  // namespace

Ground::Ground(bool service) : service_(service) {
    tree_ = service ? make_runner_tree(&why_) : TreeLeaf::make("worker", &why_);
    if (tree_ && !service && !tree_->lets_in(&why_)) tree_.reset();
    guard_ = std::make_unique<Guard>(tree_ ? tree_->folder() : "");
    if (tree_ || !service) return;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    talk("dibs-runner: no control groups here (" + why_ +
         "): what a worker starts outside its process group is found by its variables alone, and "
         "lives on if the runner is killed");
}

Ground::~Ground() {
    if (tree_) tree_->kill();
    guard_.reset();
    if (!tree_ && service_) end_descendants();
}

// One that is killed again at once would be killed as often as it is started.
void Ground::renew_guard(int64_t now_ns) {
    constexpr int64_t kAtOnce = 10 * DIBS_SECOND;
    std::string then = "another one is started";
    if (guard_renewed_ns_ > now_ns - kAtOnce) {
        guard_->give_up();
        then = "it was killed twice, and none is started any more";
    } else {
        guard_renewed_ns_ = now_ns;
        try {
            guard_->start();
        } catch (const Failure& failure) {
            then = std::string("no other one can be started: ") + failure.what();
        }
    }
    talk(std::string(service_ ? "dibs-runner" : "dibs worker") +
         ": dibs-guard was killed: without it, what the processes have started lives on if this "
         "program is killed; " +
         then);
}

// Of what it has started all have its variable, if they have not changed it.
void Ground::end_orphans(const std::string& variable) const {
    if (tree_ || !service_) return;
    const TreeLeaf all("");
    std::vector<uint32_t> left = all.processes();
    std::erase_if(left, [&](uint32_t pid) {
        if (guard_->has(static_cast<pid_t>(pid))) return true;
        std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        return ('\0' + text).find('\0' + variable + '\0') == std::string::npos;
    });
    all.signal_all(SIGKILL, left);
}

void Ground::prepare(const Options& options) {
    if (!tree_ && options.leftovers == Leftovers::kEnd) {
        throw Failure(kExitOwnFailure,
                      std::string(service_ ? "leftovers = \"end\"" : "--leftovers end") +
                          " needs a control group for each process: " + why_);
    }
    if (options.notify && !folder_) folder_ = std::make_unique<NotifyFolder>();
    if (options.notify && options.user) folder_->let_in();
    if (options.memory_max != 0) enable("memory", "memory_max", &memory_);
    if (options.cpu_max_us != 0) enable("cpu", "cpu_max", &cpu_);
}

void Ground::enable(const std::string& name, const std::string& key, Controller* controller) {
    if (controller->is_there || controller->is_missed) return;
    const std::string why = tree_ ? enable_controller(*tree_, name, guard_->pid()) : why_;
    controller->is_there = why.empty();
    controller->is_missed = !why.empty();
    if (!why.empty()) talk("dibs-runner: " + key + " is not enforced: " + why);
}

std::string Ground::next_id() {
    const auto pid = static_cast<uint32_t>(getpid());
    return std::to_string(pid) + "-" + std::to_string(process_start_time(pid)) + "-" +
           std::to_string(ids_++);
}

std::string Ground::notify_path() {
    return folder_->path() + "/" + std::to_string(paths_++);
}

}  // namespace dibs::ctl::worker
