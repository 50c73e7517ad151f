// tests/naive/naive_core_turns.hpp -- commands to a naive core, and what it decides, turn by turn.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

// One session of uid 1000, pid 70 as holder, one of uid 0, pid 80 as worker; pools as a test likes.
class NaiveCoreTurns : public testing::Test {
  protected:
    NaiveCoreTurns() {
        core_.begin_turn(1000);
        holder_ = core_.open_session({.uid = 1000, .pid = 70});
        worker_ = core_.open_session({.uid = 0, .pid = 80});
    }

    uint32_t counted(uint32_t slots) {
        core::PoolConfig config;
        config.name = "counted";
        config.slots = slots;
        return add(config);
    }
    uint32_t workers(core::TimeNs ttl_ns, bool release_is_ready = false) {
        core::PoolConfig config;
        config.name = "workers";
        config.kind = shm::PoolKind::kWorker;
        config.reservation_ttl_ns = ttl_ns;
        config.release_is_ready = release_is_ready;
        return add(config);
    }
    uint32_t add(const core::PoolConfig& config) {
        std::string why;
        return core_.set_pool(config, &why);
    }
    // Announces a slot that is ready; the tests that use it announce slot ids from 0.
    void announce(uint32_t pool, bool is_protected = false) {
        core_.apply(core::Announce{
            .session = worker_, .pool = pool, .is_protected = is_protected, .ready = true});
    }
    void claim(uint32_t pool,
               uint16_t tag,
               uint16_t units = 1,
               core::TimeNs timeout = shm::kNever) {
        core_.apply(core::Claim{
            .session = holder_, .tag = tag, .units = units, .pool = pool, .timeout_ns = timeout});
    }
    void say(core::WorkerWord::Kind kind, uint64_t slot, uint32_t round, bool flag = false) {
        core_.apply(core::WorkerWord{.kind = kind,
                                     .try_again = flag,
                                     .then_ready = flag,
                                     .session = worker_,
                                     .slot = slot,
                                     .round = round,
                                     .code = 9});
    }
    // Ends the turn, opens the next, and gives what was decided but for demand.
    std::vector<core::Decision> turn(core::TimeNs next) {
        core_.decide();
        std::vector<core::Decision> decided;
        for (const core::Decision& decision : core_.decisions()) {
            if (decision.kind != core::DecisionKind::kDemand) decided.push_back(decision);
        }
        core_.begin_turn(next);
        return decided;
    }

    NaiveCore core_{core::Limits{}};
    uint32_t holder_ = 0;
    uint32_t worker_ = 0;
};

inline std::vector<core::DecisionKind> kinds(const std::vector<core::Decision>& decided) {
    std::vector<core::DecisionKind> kinds;
    for (const core::Decision& decision : decided)
        kinds.push_back(decision.kind);
    return kinds;
}

}  // namespace dibs::naive
