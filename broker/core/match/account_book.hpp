// broker/core/match/account_book.hpp -- holds the data derived for pools ordered by account.
//
// Empty crowds, stalls, tenants and fan-outs stay until sweep(): the next claim is likely to be
// like the last. The book is made with the first pool ordered by account.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "broker/core/ledger/account_rows.hpp"
#include "broker/core/match/crowd.hpp"
#include "broker/core/match/crowd_heads.hpp"
#include "broker/core/match/labels.hpp"
#include "broker/core/rules/reported_workers.hpp"
#include "broker/core/store/index.hpp"
#include "broker/core/store/ordered_rows.hpp"
#include "broker/core/store/row_index.hpp"

namespace dibs::core {

struct AccountBook : AccountRows, ReportedWorkers {
    AccountBook(State& state, Edit& edit, Arena& arena, uint64_t seed);

    LabelSets labels;

    std::vector<Crowd> crowds;
    std::vector<Stall> stalls;
    std::vector<Tenant> tenants;
    std::vector<Fanout> fanouts;
    std::vector<uint32_t> free_crowds;
    std::vector<uint32_t> free_stalls;
    std::vector<uint32_t> free_tenants;
    std::vector<uint32_t> free_fanouts;
    Index crowd_by_key{0};   // pool, account, both sets, units
    Index stall_by_key{0};   // pool, labels
    Index tenant_by_key{0};  // pool, account
    Index fanout_by_key{0};

    std::vector<std::vector<uint32_t>> crowds_of_pool;  // those with waiting claims
    std::vector<std::vector<uint32_t>> stalls_of_pool;
    std::vector<StallBits> stall_bits;                      // by pool
    std::vector<std::vector<uint32_t>> tenants_of_pool;     // those with leases
    std::vector<std::vector<uint32_t>> tenants_of_account;  // those there are
    std::vector<TenantWatch> watches;                       // by pool

    struct Link {
        uint32_t next = shm::kNoRow;
        uint32_t previous = shm::kNoRow;
    };
    std::vector<Link> slot_links;          // within a stall's idle ones, or its leased ones
    std::vector<uint32_t> crowd_of_claim;  // by claim row
    std::vector<uint32_t> stall_of_slot;   // by slot row
    std::vector<uint32_t> claim_of_lease;  // by lease row
    std::vector<uint32_t> promised_to;     // slot row → claim row
    // Pool → promised slots that are ready, and whose workers may not be asked yet. Some may not be
    // there any more.
    std::vector<std::vector<uint32_t>> held_over;
    OrderedRows tenant_leases;
    OrderedRows stall_leases;

    // When a balance changes what may be granted; computed when it is first asked for after a turn.
    bool crossing_known = false;
    uint64_t crossing_ns = 0;

    // Whether pools ordered by account are looked at: not while nothing of them has changed since a
    // pass that found nothing to do, and time changes nothing either (next_crossing).
    bool has_changed = true;  // since the last turn opened
    bool is_passing = false;
    bool has_refunded = false;  // in the pass: a claim that was looked at before may be served now
    bool is_held_back = false;  // every idle slot, by a claim that found too few
    bool service_has_ended = false;  // of the last pass, and somebody waits behind it
    bool looks = true;               // in this turn
    uint64_t looked_ns = 0;          // the last turn that could do without
    bool lacks_room = false;  // a claim could preempt, had the arena room for what it takes over

    AccountPass pass;
    // Crowds by the class at which they waited when they were added. A crowd that has been served,
    // or waits at another class by now, is passed over: a step looks at its own class's alone.
    std::array<std::vector<uint32_t>, kClassesAndFree> crowds_at;
    std::vector<uint64_t> banned_in;  // account → the last step in which it might not preempt
    uint64_t bans = 0;                // such steps
    // What a turn's passes have granted cannot be taken before the next turn. Turns count from 1.
    uint64_t turn = 1;
    bool has_passed = false;           // a pass of this turn has begun
    std::vector<uint64_t> granted_in;  // lease → the turn whose passes have granted it
    bool is_deferred = false;          // a claim was kept from such a lease: the next turn looks
    // A walk over crowds computes each account's best class once.
    std::vector<uint64_t> seen_in;  // account → the last walk that came to it
    std::vector<uint8_t> best_of;   // account → what that one found
    uint64_t walks = 0;
    std::vector<uint32_t> come_back;  // claims that wait again since the pass began
    uint32_t announced_set = shm::kNoRow;
    RowIndex claim_by_number;
    std::vector<std::pair<uint32_t, uint32_t>> to_reprioritise;  // account, tenant
    std::vector<uint32_t> stall_scratch;
    CrowdHeads heads;                 // of the class that is served
    std::vector<CrowdAtHead> takers;  // of those that may preempt
    std::vector<uint32_t> chosen;
    std::vector<uint32_t> row_scratch;

    uint32_t crowd_for(uint32_t pool,
                       uint32_t account,
                       uint32_t base,
                       uint32_t preferred,
                       uint16_t units,
                       uint64_t seed);
    uint32_t stall_for(uint32_t pool, uint32_t labels);
    uint32_t tenant_for(uint32_t pool, uint32_t account);
    [[nodiscard]] uint32_t find_tenant(uint32_t pool, uint32_t account) const;
    // --- the pass that runs
    void come_to_class(uint32_t crowd, uint8_t at_class) {
        crowds[crowd].waits_at = at_class;
        if (at_class == kNoClass) return;
        pass.classes |= static_cast<uint8_t>(1U << at_class);
        if (wants_two_steps(crowds[crowd])) pass.two_steps |= static_cast<uint8_t>(1U << at_class);
        crowds_at[at_class].push_back(crowd);
    }
    void begin_turn() {
        ++turn;
        has_passed = false;
        is_deferred = false;
    }
    void note_grant(uint32_t lease) { granted_in[lease] = has_passed ? turn : 0; }
    void ban_accounts();
    [[nodiscard]] bool lacks_preferred(std::span<const std::string> held, uint32_t preferred) const;
    [[nodiscard]] bool waits_at(uint8_t at_class) const {
        return (pass.classes >> at_class & 1U) != 0;
    }
    // Where no claim prefers a label, what has them all is what has those it must have, and one
    // step does what two would; unless a claim of several units holds back in the first what it
    // does not find in the second, because its account's limits count what is served between.
    [[nodiscard]] bool wants_two_steps(const Crowd& crowd) const {
        return crowd.preferred != shm::kNoRow ||
               (crowd.units > 1 && crowd.account != shm::kNoRow && !limits[crowd.account].empty());
    }
    [[nodiscard]] bool has_two_steps(uint8_t at_class) const {
        return (pass.two_steps >> at_class & 1U) != 0;
    }
    [[nodiscard]] bool waits_here(const Crowd& crowd) const {
        return crowd.waiting != 0 && crowd.waits_at == pass.at_class;
    }
    // The first sight of an account in this walk.
    bool sees(uint32_t account) {
        if (seen_in[account] == walks) return false;
        seen_in[account] = walks;
        return true;
    }

    // --- tenants whose leases may have to move
    void watch_tenant(uint32_t tenant) {
        if (tenants[tenant].is_stale) return;
        tenants[tenant].is_stale = true;
        watches[tenants[tenant].pool].stale.push_back(tenant);
    }
    void watch_tenants_of(uint32_t account) {
        for (const uint32_t tenant : tenants_of_account[account])
            watch_tenant(tenant);
    }

    // --- stalls of a pool, a bit each where there are no more than 64
    [[nodiscard]] bool has_stall_bits(uint32_t pool) const {
        return stalls_of_pool[pool].size() <= 64;
    }
    // Its first idle slot came, or its last one went.
    void mark_idle(const Stall& stall) {
        if (stall.place >= 64) return;
        const uint64_t bit = uint64_t{1} << stall.place;
        uint64_t& idle = stall_bits[stall.pool].idle;
        idle = stall.idle.head != shm::kNoRow ? idle | bit : idle & ~bit;
    }
    void look_at_stalls(const Crowd& crowd);

    // When it was last in a list of a pass and not served.
    [[nodiscard]] uint64_t examined_ns(const Crowd& crowd) const {
        return crowd.was_listed ? std::max(crowd.examined_ns, looked_ns) : crowd.examined_ns;
    }

    void sweep();
    // How many crowds there are before a new one has the empty ones looked for: as many again as
    // the last look has left. None is before all rows are back in their crowds.
    static constexpr size_t kSweepAt = 4096;
    static constexpr size_t kNoSweep = SIZE_MAX;
    size_t sweep_at = kSweepAt;
    void forget_account(uint32_t account);

  private:
    uint32_t fanout_for(uint32_t pool, uint32_t account, uint64_t union_hash);
    void drop_crowd(uint32_t crowd);
    void leave_stalls(uint32_t stall);
};

}  // namespace dibs::core
