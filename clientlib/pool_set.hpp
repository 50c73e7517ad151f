// clientlib/pool_set.hpp -- a claim of a pool set while it waits in the set's members.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "clientlib/session.hpp"

namespace dibs::client {

// A claim of a pool set that waits, in the memory of its call: a claim in each member.
struct SetWait {
    struct Member {
        uint32_t pool = 0;
        uint32_t tag = kNone;  // of its claim while that waits
        bool wanted = true;    // to be waited in
    };
    Member member[shm::kSetMembersMax];
    uint32_t members = 0;
    uint32_t set = 0;      // as dibs_pool says it
    uint64_t version = 0;  // whose members these are
    uint32_t waiting = 0;
    bool by_load = false;  // it is the broker that chooses
    bool decided = false;  // by the first grant, or a cancel, or the session's end
    dibs_completion end = {};

    [[nodiscard]] Member* of_tag(uint32_t tag) {
        for (uint32_t at = 0; at < members; ++at)
            if (tag != kNone && member[at].tag == tag) return &member[at];
        return nullptr;
    }
};

int claim_of_set(Session& session,
                 uint32_t set,
                 const dibs_claim_options& options,
                 dibs_completion& end);
bool is_ranked_by_load(const Session& session, uint32_t set);
// The pool of a claim that has ended, its grant taken in: of a set's the broker says it.
uint32_t learn_pool(Session& session, uint32_t tag, const shm::Completion& completion);
inline uint32_t pool_of_end(Session& session, uint32_t tag, const shm::Completion& completion) {
    const uint32_t pool = session.tags[tag].pool;
    return (pool & DIBS_POOL_SET) == 0 ? pool : learn_pool(session, tag, completion);
}
// DIBS_EPOOL: there is no pool of that row, nor set of that number.
int check_pool(Session& session, uint32_t pool);
// Adds the units of the further pools that a claim names. DIBS_EARGUMENT, DIBS_EPOOL, DIBS_EUNITS.
int add_pools(Session& session, uint32_t pool, const dibs_claim_options& options, uint32_t& units);
// The number of the pool set of that name. DIBS_EPOOL, DIBS_ETORN.
int find_set(const Session& session, const char* name, uint32_t* set);

// Of the set that the session waits in: whether its version is another one; the member whose claim
// has this tag, or null; and how that claim has ended, of which a second grant is given back.
bool set_has_changed(const Session& session);
SetWait::Member* member_of_tag(const Session& session, uint32_t tag);
void take_set_end(Session& session, SetWait::Member& member, const dibs_completion& end);

}  // namespace dibs::client
