// broker/ctl/tree/tree_leaf.hpp -- makes the control group in which a command's processes stay.
// Where there is none to be had, it finds them as descendants.
//
// A leaf below this process's own group, where this user may make one: a group of the user's
// service manager, or any for root. What the command starts is in it, whatever session or parent it
// has, and whatever user a set-user-ID program runs as; so all of it can be ended. This process
// stays outside.
//
//   (none) ── make ──► empty ── take ──► populated ── its last process ends ──► empty ── ~ ──►
//   (none)
//
// A leaf may have leaves below it, which end with it. One that a killed process has left behind is
// removed by the next process that makes one beside it, or with the one that it is in.
//
// Without a group this process becomes a child subreaper: what its command has started is its own
// child once its parent has ended. That is known only as long as this process lives, and another
// user's processes among them cannot be ended.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shm/descriptor.hpp"

namespace dibs::ctl {

class TreeLeaf {
  public:
    // "dibs-KIND-PID", empty. Null, and *why: it cannot be had here. Kinds are exec, worker and
    // runner; `more` stands behind the number.
    static std::unique_ptr<TreeLeaf> make(const std::string& kind,
                                          std::string* why,
                                          const std::string& more = "");
    // The same within this one.
    [[nodiscard]] std::unique_ptr<TreeLeaf> make_below(const std::string& name,
                                                       std::string* why) const;
    // All descendants of this process.
    static std::unique_ptr<TreeLeaf> of_descendants();
    explicit TreeLeaf(std::string folder);
    // Waits a moment for what is ending.
    ~TreeLeaf();
    TreeLeaf(const TreeLeaf&) = delete;
    TreeLeaf& operator=(const TreeLeaf&) = delete;

    // Puts a process into it. False, and *why: it may not be.
    bool take(pid_t process, std::string* why) const;
    // Where a child writes "0" to be in it before it starts anything; invalid, errno set.
    [[nodiscard]] shm::Descriptor entrance() const;
    // Writes to a file of the group, such as memory.max. False, errno set.
    [[nodiscard]] bool set(const char* file, const std::string& text) const;
    // Tried with a child that ends at once: who may make a group may not always fill it.
    bool lets_in(std::string* why) const;

    [[nodiscard]] const std::string& folder() const { return folder_; }
    [[nodiscard]] bool is_group() const { return !folder_.empty(); }
    // Has POLLPRI when is_populated() may have changed since it was last asked.
    [[nodiscard]] int events() const { return events_.get(); }
    [[nodiscard]] bool is_populated() const;
    // Of a group. Waits so long at most; false: some process still lives.
    [[nodiscard]] bool await_empty(int timeout_ms) const;
    [[nodiscard]] std::vector<uint32_t> processes() const;
    // To each process that this user may signal.
    void signal(int signal) const { signal_all(signal, processes()); }
    // To those of them that are in it.
    void signal_all(int signal, const std::vector<uint32_t>& pids) const;
    // All at once, those of other users too.
    void kill() const;

  private:
    [[nodiscard]] std::vector<uint32_t> processes_of_leaf() const;

    std::string folder_;
    shm::Descriptor group_;
    shm::Descriptor events_;
    shm::Descriptor listing_;  // cgroup.procs
};

// "2 processes running, process 12 (sleep) of user alice and others"; empty: there are none.
std::string shown_running(const std::vector<uint32_t>& pids);
std::string shown_running(size_t count, const std::string& first);

}  // namespace dibs::ctl
