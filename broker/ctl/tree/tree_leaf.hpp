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
// A leaf that a killed process has left behind is removed by the next one that is made beside it,
// or with the one that it is in.
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
    // With that process in it. Null, and *why: it cannot be had here.
    static std::unique_ptr<TreeLeaf> make(pid_t process, std::string* why);
    // All descendants of this process.
    static std::unique_ptr<TreeLeaf> of_descendants();
    explicit TreeLeaf(std::string folder);
    // Waits a moment for what is ending.
    ~TreeLeaf();
    TreeLeaf(const TreeLeaf&) = delete;
    TreeLeaf& operator=(const TreeLeaf&) = delete;

    [[nodiscard]] bool is_group() const { return !folder_.empty(); }
    // Has POLLPRI when is_populated() may have changed since it was last asked.
    [[nodiscard]] int events() const { return events_.get(); }
    [[nodiscard]] bool is_populated() const;
    // Of a group. Waits so long at most; false: some process still lives.
    [[nodiscard]] bool await_empty(int timeout_ms) const;
    [[nodiscard]] std::vector<uint32_t> processes() const;
    // To each process that this user may signal.
    void signal(int signal) const;
    // All at once, those of other users too.
    void kill() const;

  private:
    std::string folder_;
    shm::Descriptor group_;
    shm::Descriptor events_;
};

}  // namespace dibs::ctl
