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
// The number of the pool set of that name. DIBS_EPOOL, DIBS_ETORN.
int find_set(const Session& session, const char* name, uint32_t* set);

// Of the set that the session waits in: whether its version is another one; the member whose claim
// has this tag, or null; and how that claim has ended, of which a second grant is given back.
bool set_has_changed(const Session& session);
SetWait::Member* member_of_tag(const Session& session, uint32_t tag);
void take_set_end(Session& session, SetWait::Member& member, const dibs_completion& end);

}  // namespace dibs::client
