// broker/core/rules/leases.hpp -- begins, prolongs and ends leases, and hands them over.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "broker/core/module.hpp"
#include "broker/core/rules/ended_leases.hpp"
#include "broker/core/store/chains.hpp"

namespace dibs::core {

enum class Tell : uint8_t { kHolder, kNobody };

struct Leases : Module<Leases> {
    explicit Leases(const State& rows)
        : Module(rows),
          pool_leases(rows.pools.size(), rows.leases.size()),
          expired_leases(rows.pools.size(), rows.leases.size()),
          collected(rows.pools.size()) {}

    struct Grantee {  // what a lease takes over from its claim
        uint32_t session;
        uint32_t pool;
        uint16_t units;
        uint16_t tag;
        uint64_t number;
        uint64_t user_data;
        TimeNs interval_ns;
        uint32_t room;
        uint32_t room_lines;
        bool is_plain;  // nothing but a slot was asked for: in some pools it may be parked
        bool by_word = false;
    };

    Chains pool_leases;                      // list: pool, row: lease, oldest first
    Chains expired_leases;                   // list: pool, row: lease uncollected, by expiry
    std::vector<uint32_t> collected;         // pool → slots with SlotFlag::kCollected
    std::vector<uint32_t> lapsing_list;      // of Core::lapsing()
    std::vector<Core::HeldRoom> held_rooms;  // of the leases that were found, until they are taken
    EndedLeases ended;
    void keep_room(const shm::LeaseRow& lease);
    // Prolongs it; returns the granted interval, 0 if it is bound to its holder's life. Not of one
    // whose holder is being killed.
    TimeNs keep_alive(uint32_t lease, TimeNs interval_ns);
    // What it has left, if it is dead; once more if that has been decided.
    void kill_holder(uint32_t lease);
    // Its holder is dead, and its tree is not.
    void outlive(uint32_t lease);

    // leases.cpp
    uint32_t lease_out(const Grantee& to, uint32_t first_slot);
    uint32_t grant(uint32_t claim, uint32_t first_slot);
    void apply(const Release& command);
    void result_of_end(SessionId session, uint64_t user_data, uint32_t lease);
    void apply(const Keepalive& command);
    void apply(const Touch& command);
    // Ends a lease; `except` (a slot row) is left to the caller, still marked leased.
    // `again`: its claim waits again in its old place (pools ordered by account).
    void end_lease(
        uint32_t lease, Reason reason, Tell tell, bool broken, uint32_t except, bool again = false);
    Decision& tell_of_lease(DecisionKind kind, uint32_t lease);
    void note_end(uint32_t lease, Reason reason);  // if somebody wants it
    // The claim's text for who inspects becomes the lease's.
    void take_meta(uint32_t claim, uint32_t lease);

    // Why a lease of this id cannot be meant; kOk: its row is there, and it lives.
    [[nodiscard]] Reason lease_refusal(LeaseId id, uint64_t fence) const;

    // expiry.cpp
    void lease_expired(uint32_t lease);
    void apply(const KillFailed& command);
    void take_off_lease(uint32_t slot);
    // Ends expired leases of the pool until so many units can be served, if that can be; `at_once`:
    // only if it can be in this pass. False: the log is full, go on in the next turn.
    bool collect(uint32_t pool, uint32_t units, bool at_once);
    void uncollect(uint32_t slot);
    void end_collected(uint32_t lease);

    // adoption.cpp
    void apply(const Adopt& command);

    // steer.cpp
    Reason apply(const Steer& command, TimeNs* granted_ns);

  private:
    // leases.cpp
    // The lease that the command names, or kNoRow, and the result says why.
    uint32_t find_lease(SessionId session, LeaseId id, uint64_t fence, uint64_t user_data);
    void tell_lease_end(uint32_t lease, Reason reason);

    // expiry.cpp
    void begin_grace(uint32_t lease);
    void stay_uncollected(uint32_t lease);
    [[nodiscard]] uint32_t would_come_back(uint32_t lease) const;

    // adoption.cpp
    [[nodiscard]] Reason adoption_refusal(const Adopt& command) const;

    // steer.cpp
    Reason revoke_claim(const Steer& command);
};

}  // namespace dibs::core
