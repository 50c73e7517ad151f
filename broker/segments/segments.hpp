// broker/segments/segments.hpp -- makes or takes over STATE and BOARD, and maps and shares them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>

#include "broker/core/core.hpp"
#include "broker/segments/mapping.hpp"
#include "shm/board.hpp"
#include "shm/descriptor.hpp"
#include "shm/layout.hpp"

namespace dibs {

// STATE cannot be served from, and no client has been served.
class StateFailure : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// STATE. From an empty or absent descriptor a new one is made and formatted; any other is taken
// as it is. Throws StateFailure with what is wrong with its head; its rows are attach()'s.
class StateSegment {
  public:
    StateSegment(shm::Descriptor fd, const core::Limits& limits);

    // A core over it. Throws StateFailure if what was handed over is not sound, or not right.
    [[nodiscard]] std::unique_ptr<core::Core> attach(uint64_t hash_seed) const;
    [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.bytes(); }
    [[nodiscard]] int fd() const { return fd_.get(); }
    // Whether its last broker stopped in order.
    void set_clean(bool clean) { mapping_.at<shm::StateHead>(0)->clean = clean ? 1 : 0; }

  private:
    shm::Descriptor fd_;
    Mapping mapping_;
    bool made_ = false;  // just now
};

// BOARD: written by the turn, read by all clients through a read-only descriptor. A BOARD of the
// same size that an earlier broker has left goes on: its clients have it mapped.
class BoardSegment {
  public:
    explicit BoardSegment(uint32_t pools_max,
                          uint32_t accounts_max = 0,
                          shm::Descriptor inherited = {});

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] int read_only_fd() const { return read_only_.get(); }
    [[nodiscard]] uint64_t size() const { return plan_.size; }
    [[nodiscard]] uint32_t pools_max() const { return pools_max_; }
    [[nodiscard]] uint32_t accounts_max() const { return accounts_max_; }
    [[nodiscard]] shm::BoardHead& head() const { return *mapping_.at<shm::BoardHead>(0); }
    [[nodiscard]] shm::BoardPool* pools() const { return mapping_.at<shm::BoardPool>(plan_.pools); }
    [[nodiscard]] shm::BoardPoolTotals* totals() const {
        return mapping_.at<shm::BoardPoolTotals>(plan_.totals);
    }
    [[nodiscard]] shm::BoardPoolName* names() const {
        return mapping_.at<shm::BoardPoolName>(plan_.names);
    }
    [[nodiscard]] shm::BoardHistogram* histograms() const {
        return mapping_.at<shm::BoardHistogram>(plan_.histograms);
    }
    [[nodiscard]] shm::BoardSet* sets() const { return mapping_.at<shm::BoardSet>(plan_.sets); }
    [[nodiscard]] shm::BoardCluster* cluster() const {
        return mapping_.at<shm::BoardCluster>(plan_.cluster);
    }
    [[nodiscard]] shm::BoardAccount* accounts() const {
        return mapping_.at<shm::BoardAccount>(plan_.accounts);
    }

  private:
    uint32_t pools_max_;
    uint32_t accounts_max_;
    shm::BoardPlan plan_;
    shm::Descriptor fd_;
    Mapping mapping_;
    shm::Descriptor read_only_;
};

}  // namespace dibs
