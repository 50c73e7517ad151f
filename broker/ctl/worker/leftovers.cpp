// broker/ctl/worker/leftovers.cpp -- ends what a use, or an ended process, has left in its leaf.
// A use's leftovers are the processes that were not in the leaf when the use began.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "broker/admission/peer.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/system_failure.hpp"
#include "broker/ctl/worker/assignment_text.hpp"
#include "broker/ctl/worker/hand.hpp"

namespace dibs::ctl::worker {

namespace {

// A child that has written the answer for its parent ends a moment later, and its parent is to see
// it end well.
constexpr int64_t kLeavingNs = 100 * DIBS_MILLISECOND;

// As /proc/PID/stat counts.
uint64_t ticks_since_boot() {
    timespec now = {};
    clock_gettime(CLOCK_BOOTTIME, &now);
    const auto per_second = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
    return static_cast<uint64_t>(now.tv_sec) * per_second +
           static_cast<uint64_t>(now.tv_nsec) / (DIBS_SECOND / per_second);
}

}  // namespace

void Hand::begin_use() {
    cleaned_ = false;
    if (!leaf_ || options_.leftovers == Leftovers::kKeep) return;
    members_ = leaf_->processes();
    std::sort(members_.begin(), members_.end());
    began_ticks_ = ticks_since_boot();
}

// One that has started since is another one, though its number is that of a process that was there.
// The warm process keeps its own until it is reaped.
std::vector<uint32_t> Hand::leftovers() const {
    if (!leaf_ || options_.leftovers == Leftovers::kKeep) return {};
    std::vector<uint32_t> left = leaf_->processes();
    std::erase_if(left, [this](uint32_t pid) {
        return static_cast<pid_t>(pid) == process_->pid() ||
               (std::binary_search(members_.begin(), members_.end(), pid) &&
                process_start_time(pid) <= began_ticks_);
    });
    return left;
}

// True once the use has left none; until then it is called again when one of them has ended.
bool Hand::sweep(int64_t now_ns) {
    const std::vector<uint32_t> left = leftovers();
    leftover_.reset();
    if (left.empty()) return true;
    if (state_ != State::kSweeping) {
        state_ = State::kSweeping;
        due_ns_ = after(now_ns, kLeavingNs);
        sweep_kills_ = false;
    }
    // Before it is killed: then it may be gone at once. Invalid: it is.
    leftover_ = shm::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, left.front(), 0)));
    if (sweep_kills_) leaf_->signal_all(SIGKILL, left);
    return false;
}

// They have had their moment, or have been killed and live.
void Hand::end_leftovers(int64_t now_ns) {
    const std::string shown = shown_running(leftovers());
    due_ns_ = now_ns;
    if (shown.empty()) return finish_use(now_ns);
    if (sweep_kills_) {
        return fail("has a use's leftovers, which KILL has not ended within " +
                        shown_time(options_.grace_ns) + ": " + shown,
                    now_ns);
    }
    sweep_kills_ = true;
    due_ns_ = after(now_ns, options_.grace_ns);
    if (!told_leftovers_) {
        told_leftovers_ = true;
        say("its use has left " + shown +
            ": that is ended, as what later uses leave (--leftovers keep leaves it alone)");
    }
    finish_use(now_ns);
}

void Hand::make_leaf() {
    std::string why;
    if (ground_.tree() == nullptr) return;
    const std::string number = std::to_string(index_);
    leaf_ = ground_.tree()->make_below(
        options_.service ? options_.pool.name + "-" + options_.type + "-" + number : number, &why);
    if (!leaf_) throw Failure(kExitOwnFailure, why);
    const auto limit = [&](const char* file, const std::string& text) {
        if (!leaf_->set(file, text)) throw system_failure(leaf_->folder() + "/" + file);
    };
    if (options_.memory_max != 0 && ground_.limits_memory()) {
        limit("memory.max", std::to_string(options_.memory_max));
        limit("memory.oom.group", "1");  // a worker without one of its processes is none
    }
    if (options_.cpu_max_us != 0 && ground_.limits_cpu())
        limit("cpu.max", std::to_string(options_.cpu_max_us) + " 100000");
}

bool Hand::ran_out_of_memory() const {
    if (!leaf_ || options_.memory_max == 0) return false;
    std::ifstream events(leaf_->folder() + "/memory.events");
    uint64_t count = 0;
    for (std::string name; events >> name >> count;) {
        if (name == "oom_kill" && count != 0) return true;
    }
    return false;
}

shm::Descriptor Hand::leaf_entrance() const {
    if (!leaf_) return {};
    shm::Descriptor entrance = leaf_->entrance();
    if (!entrance.valid()) throw system_failure("control group " + leaf_->folder());
    return entrance;
}

// What was in it was killed as the process ended.
void Hand::look_at_leaf(int64_t now_ns) {
    if (!leaf_ || !leaf_->is_populated()) leave_leaf(now_ns);
}

void Hand::leave_leaf(int64_t now_ns) {
    leaf_.reset();
    if (!draining_ && !planned_) return rest(now_ns);
    be_resting(now_ns);
}

void Hand::take_rest(int64_t now_ns) {
    const std::string rest = shown_running(leaf_->processes());
    say("its process has ended and left " + (rest.empty() ? "something running" : rest) +
        ", which KILL has not ended" +
        (draining_ ? "" : ": no other process is started until that has ended"));
    if (draining_) leave_leaf(now_ns);
}

}  // namespace dibs::ctl::worker
