// broker/turn/publish.hpp -- publishes pools and accounts on the BOARD for all clients to read.
//
// Only pools and accounts that the turn has touched are written, and under load at most once in a
// microsecond (accounts in a millisecond): a line that is read while it changes costs its readers
// more than they learn. Deferred writes are made before the broker sleeps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/segments/segments.hpp"
#include "broker/session/sessions.hpp"
#include "broker/turn/waits.hpp"

namespace dibs {

class Publisher {
  public:
    Publisher(core::Core& core, BoardSegment& board);

    // All pools, names included: at the start, and after a change of configuration.
    void publish_all();
    // After a turn's answers. `pressed`: a client waits already, and the BOARD can wait a little.
    void publish(bool pressed);
    // Before the broker sleeps.
    void flush();

    // A claim of this pool was granted so long after it came in.
    void granted(uint32_t pool, Path path, uint64_t waited_ns);
    // A client reports that its safety net had to ring. A client that could control the broker
    // anyway is believed; reports of other clients are counted apart, since they prove nothing.
    void net_found_work(bool believed);
    void set_sessions(size_t sessions);
    // Adds what the client has recorded since the last time. A count that went back, or grew by
    // more than the session can have completed, is cut.
    void harvest(Session& session);

    // Since this process began; nullptr: no such pool.
    [[nodiscard]] const PoolWaits* waits(uint32_t pool) const;
    // How long claims took, as the clients say: the sum is within a thirty-second.
    [[nodiscard]] Waits self_reported() const;
    [[nodiscard]] uint64_t net_count() const;
    [[nodiscard]] uint64_t net_reported_count() const { return net_reported_; }

  private:
    void write_pool(uint32_t pool);
    void write_name(uint32_t pool);
    void write_dirty();
    void write_accounts();
    void write_account(uint32_t row);

    core::Core& core_;
    BoardSegment& board_;
    std::vector<uint32_t> dirty_;  // pools to write
    std::vector<uint8_t> is_dirty_;
    std::vector<PoolWaits> waits_;  // by pool
    uint64_t net_reported_ = 0;
    core::TimeNs written_ns_ = 0;
    core::TimeNs accounts_ns_ = 0;  // when accounts were written
};

}  // namespace dibs
