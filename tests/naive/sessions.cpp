// tests/naive/sessions.cpp -- "Sessions" of docs/scheduling.md: what a death takes with it.
// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

using shm::Outcome;
using shm::Reason;

uint32_t NaiveCore::open_session(const core::SessionOpen& open) {
    if (m_.sessions.size() >= limits_.sessions) return shm::kNoRow;
    if (open.account.size() > shm::kNameMax || open.account.find('\0') != std::string_view::npos) {
        return shm::kNoRow;
    }
    const uint32_t id = m_.sessions_seen++;
    know_account(std::string{open.account});
    m_.sessions[id] = Session{open.uid, open.pid, open.tags_max, std::string{open.account}, m_.now};
    return id;
}

// "Death of a session (S0.40, invariant 17): in this order its claims (by number) end cancelled,
// reason holder gone, told to nobody, slots freed; its leases (by claim number) end, told to
// nobody, slots freed; its own slots (by pool row, then number) go."
void NaiveCore::session_died(uint32_t session) {
    dying_ = session;
    const std::map<uint64_t, Claim> claims = m_.claims;
    for (const auto& [number, claim] : claims) {
        if (claim.session != session) continue;
        end_claim_and_free(number, Outcome::kCancelled, Reason::kHolderGone);
    }
    const std::map<uint64_t, Lease> leases = m_.leases;
    for (const auto& [id, lease] : leases) {
        if (lease.session != session) continue;
        m_.pools.at(lease.pool).totals.released += 1;
        end_lease_and_free(id, false);
    }
    std::map<std::tuple<uint32_t, uint32_t>, uint64_t> own;
    for (const auto& [id, slot] : m_.slots) {
        if (slot.session == session) own[{slot.pool, slot.number}] = id;
    }
    for (const auto& [place, id] : own) {
        if (m_.slots.contains(id)) slot_lost(id);
    }
    m_.sessions.erase(session);
    dying_ = shm::kNoRow;
}

// "idle, recovering, unknown, kept: row freed. Reserved: the claim waits again, its other slots are
// freed. Leased: the lease ends worker lost, its holder is told, its other slots are freed."
void NaiveCore::slot_lost(uint64_t lost) {
    const Slot slot = m_.slots.at(lost);
    std::vector<uint64_t> slots;
    if (slot.is == SlotIs::kReserved) {
        slots = m_.claims.at(slot.claim).slots;
        wait_again(slot.claim);
    } else if (slot.is == SlotIs::kLeased) {
        tell_lease_end(m_.leases.at(slot.claim), Reason::kWorkerLost);
        slots = remove_lease(slot.claim);
    } else if (slot.holder_is_killed) {
        take_off_lease(lost);
    }
    for (const uint64_t id : slots) {
        if (id != lost) free_slot(id);
    }
    leave(lost);
}

}  // namespace dibs::naive
