// broker/turn/transient_pools.hpp -- removes pools that are no longer used.
//
// These are pools made on the spot, and pools that the file no longer names.
//
// A pool is unused when it has had no claim, no lease and no request to make it for as long as the
// configuration says. Only this process keeps the start of that time: after a takeover it begins
// anew, so that a client that was about to claim finds its pool. A pool that the file does not name
// any more goes at once when it is unused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "broker/core/core.hpp"

namespace dibs {

class TransientPools {
  public:
    explicit TransientPools(core::Core& core) : core_(core) {}

    void set_idle(core::TimeNs idle_ns) { idle_ns_ = idle_ns; }
    void find();                    // those of an earlier broker
    void asked_for(uint32_t pool);  // made, or wanted where it is, or to go
    void note();                    // after a turn: which of them are in use
    // The first instant at which one may go.
    [[nodiscard]] core::TimeNs next_due() const { return due_ns_; }
    // In a turn, before its commands: deletes those that are due. True if there were any.
    bool end_unused();

  private:
    struct Entry {
        uint32_t pool;
        core::TimeNs unused_since_ns;  // kNever: it is in use
    };
    [[nodiscard]] bool is_transient(uint32_t pool) const;
    [[nodiscard]] bool leaves(uint32_t pool) const;
    [[nodiscard]] core::TimeNs due(const Entry& entry) const;
    void look_at(Entry& entry) const;
    void find_first();

    core::Core& core_;
    std::vector<Entry> entries_;
    core::TimeNs idle_ns_ = 0;
    core::TimeNs due_ns_ = shm::kNever;  // the least of the entries'
};

}  // namespace dibs
