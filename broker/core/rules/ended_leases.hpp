// broker/core/rules/ended_leases.hpp -- remembers the leases that ended last, for who inspects
// them.
//
// In this process's memory only: a broker that takes over knows none of those that ended before.
// No decision depends on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/ids.hpp"
#include "shm/layout.hpp"

namespace dibs::core {

struct EndedLease {
    uint64_t id = 0;
    uint64_t number = 0;
    uint64_t fence = 0;
    TimeNs granted_ns = 0;
    TimeNs kept_ns = 0;
    TimeNs expires_ns = 0;
    TimeNs interval_ns = 0;
    TimeNs ended_ns = 0;
    uint32_t pool = 0;
    uint32_t uid = 0;
    uint32_t pid = 0;
    uint32_t slot = 0;  // number of its first one
    uint16_t units = 0;
    shm::Reason reason = shm::Reason::kOk;  // kOk: given back; kHolderGone: its process has ended
    bool killed = false;                    // and the broker has killed that, or what it left
    bool is_part = false;
    std::array<uint64_t, shm::kResourcesMax> amounts = {};  // of a part
    std::string meta = {};
};

class EndedLeases {
  public:
    // So many at most; 0 = none, at first.
    void keep(size_t most) {
        ring_.assign(most, {});
        next_ = 0;
    }
    [[nodiscard]] bool wanted() const { return !ring_.empty(); }
    // In the place of the oldest.
    EndedLease& next() {
        EndedLease& place = ring_[next_];
        next_ = next_ + 1 < ring_.size() ? next_ + 1 : 0;
        return place;
    }
    // By id, or by number where that is 0, of several that had it the last; null: it is not known.
    [[nodiscard]] const EndedLease* find(uint64_t id, uint64_t number) const {
        for (size_t age = 1; age <= ring_.size(); ++age) {
            const EndedLease& lease = ring_[(next_ + ring_.size() - age) % ring_.size()];
            if (lease.id != 0 && (id != 0 ? lease.id == id : lease.number == number)) return &lease;
        }
        return nullptr;
    }

  private:
    std::vector<EndedLease> ring_;
    size_t next_ = 0;
};

}  // namespace dibs::core
