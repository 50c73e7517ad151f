// tests/naive/sessions.cpp -- sessions: opened, and what a death takes with it.
//
// Written from the statements named above each function. That claims come before leases, and those
// before slots, and each of them in which order, no statement fixes: it is so that the same death
// gives the same decisions (invariant 6). Accounts are those of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include "tests/naive/gangs.hpp"

namespace dibs::naive {

using shm::Outcome;
using shm::Reason;

// Invariant 5: its id is nobody's after it. Invariant 8: there are so many at most.
uint32_t NaiveCore::open_session(const core::SessionOpen& open) {
    if (m_.sessions.size() >= limits_.sessions) return shm::kNoRow;
    if (open.account.size() > shm::kNameMax || open.account.find('\0') != std::string_view::npos) {
        return shm::kNoRow;
    }
    const uint32_t id = m_.sessions_seen++;
    know_account(std::string{open.account});
    m_.sessions[id] =
        Session{open.uid, open.pid, open.tags_max, std::string{open.account}, m_.now, false};
    return id;
}

// Invariant 17: nothing of it is left. What is told of it meanwhile is told to nobody.
void NaiveCore::session_died(uint32_t session, bool tree_lives) {
    dying_ = session;
    give_up_roles(session);
    gangs().session_gone(session);
    tree_lives ? holder_died(session) : client_died(session);
    worker_died(session);
    if (!tree_lives) m_.sessions.erase(session);
    dying_ = shm::kNoRow;
}

// "What it waited for ends as at its death, and what it offered. Its leases last, and have no end
// by time any more; in a pool of strict expiry kKill is decided."
void NaiveCore::holder_died(uint32_t session) {
    m_.sessions.at(session).is_outlived = true;
    cancel_claims(session);
    for (auto& [number, lease] : m_.leases) {
        if (lease.session == session && !lease.is_being_killed) outlive(lease);
    }
}

void NaiveCore::outlive(Lease& lease) {
    lease.may_park = lease.is_parked = lease.is_wanted = false;
    const bool strict = is_strict(lease);
    lease.is_outlived = true;
    if (strict) return kill_holder(lease);
    lease.is_in_grace = lease.is_uncollected = lease.by_word = false;
    lease.interval_ns = 0;
    lease.expires_ns = shm::kNever;
}

// S0.2, invariant 3: the cancel signals of its claims have fired, so each ends, once. S0.40: the
// slots that were reserved for it, and those that it was given, are not stranded.
void NaiveCore::cancel_claims(uint32_t session) {
    const std::map<uint64_t, Claim> claims = m_.claims;
    for (const auto& [number, claim] : claims) {
        if (claim.session != session) continue;
        end_claim_and_free(number, Outcome::kCancelled, Reason::kHolderGone);
    }
}

void NaiveCore::client_died(uint32_t session) {
    cancel_claims(session);
    const std::map<uint64_t, Lease> leases = m_.leases;
    for (const auto& [number, lease] : leases) {
        if (lease.session != session) continue;
        count_release(lease);
        end_lease_and_free(number, false);
    }
}

// S0.15: slots that do not exist any more. One may go with another: a claim that was for several
// of them let go a slot that drains.
void NaiveCore::worker_died(uint32_t session) {
    // "Parts before their slot, in the order of their grants"; those that had none by placeholder.
    using Gang = std::pair<uint64_t, uint32_t>;
    std::map<std::tuple<uint32_t, uint32_t, bool, uint64_t, Gang, uint64_t>, uint64_t> its_slots;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.session != session) continue;
        const Gang gang = place_in_gang(m_, slot);
        its_slots[{slot.pool, slot.number, !slot.part_of, slot.fence, gang, id}] = id;
    }
    for (const auto& [place, id] : its_slots) {
        if (m_.slots.contains(id)) slot_lost(id);
    }
}

// S0.25: in transition it is not found, and the claim goes back to its place. Invariant 2: a lease
// has nothing left to be of, and ends; where its holder is being killed, only with the last of its
// slots. Design 5: the others of either are freed.
void NaiveCore::slot_lost(uint64_t id) {
    const Slot slot = m_.slots.at(id);
    if (slot.is == SlotIs::kReserved) {
        const std::vector<uint64_t> slots = m_.claims.at(slot.claim).slots;
        wait_again(slot.claim);
        free_others(slots, id);
    } else if (slot.is == SlotIs::kLeased) {
        tell_lease_end(m_.leases.at(slot.claim), Reason::kWorkerLost);
        free_others(remove_lease(slot.claim), id);
    } else if (slot.holder_is_killed) {
        take_off_lease(id);
    }
    leave(id);
}

}  // namespace dibs::naive
