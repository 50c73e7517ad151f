// broker/turn/cut_leases.cpp -- logs the leases that end because the broker ends.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/cut_leases.hpp"

#include <string>

#include "broker/text/log.hpp"

namespace dibs {

namespace {

constexpr uint32_t kNamed = 64;  // the log is for people

std::string slots_of(const core::Core& core, const shm::LeaseRow& lease) {
    const shm::PoolRow& pool = core.pool(lease.pool);
    std::string text(pool.name, pool.name_size);
    char between = '/';
    for (uint32_t slot = lease.first_slot; slot != shm::kNoRow;
         slot = core.slot(slot).holder_next) {
        text += between + std::to_string(core.slot(slot).number);
        between = ',';
    }
    return text;
}

}  // namespace

void say_what_is_cut(const core::Core& core) {
    uint32_t leases = 0;
    for (uint32_t row = 0; row < core.leases_max(); ++row) {
        const shm::LeaseRow& lease = core.lease(row);
        if (lease.state == shm::LeaseState::kFree) continue;
        if (++leases > kNamed) continue;
        const shm::SessionRow& session = core.session(lease.session);
        log::warning("the broker stops: the lease of " + slots_of(core, lease) + " ends (process " +
                     std::to_string(session.pid) + " of user " + std::to_string(session.uid) +
                     ", held for " +
                     std::to_string((core.now() - lease.granted_ns) / 1'000'000'000) + " s)");
    }
    if (leases > kNamed) {
        log::warning("the broker stops: " + std::to_string(leases - kNamed) +
                     " more leases end with it");
    }
}

}  // namespace dibs
