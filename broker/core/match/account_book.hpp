// broker/core/match/account_book.hpp -- holds the data derived for pools ordered by account.
//
//   Tenant   an account in a pool: its leases by class, the cheapest first
//   Crowd    a pool's waiting claims that are alike (account, labels, units), by number: one look
//            decides for all of them
//   Stall    a pool's slots with the same labels: the idle ones in the order in which they became
//            idle, the leased ones in the order of their grants, and by class and cost
//   Fanout   how many slots claims of one account with one set of labels hold at a class below free
//
// Empty crowds, stalls, tenants and fan-outs stay until sweep(): the next claim is likely to be
// like the last. The book is made with the first pool ordered by account.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "broker/core/match/claim_line.hpp"
#include "broker/core/match/crowd_heads.hpp"
#include "broker/core/match/labels.hpp"
#include "broker/core/rules/kept_pull.hpp"
#include "broker/core/store/chains.hpp"
#include "broker/core/store/index.hpp"
#include "broker/core/store/ordered_rows.hpp"
#include "broker/core/store/row_index.hpp"
#include "broker/core/store/timers.hpp"

namespace dibs::core {

using Cost = std::array<int64_t, shm::kClasses>;

// Micro-units, and those of a second: what a balance may be either way, and a rate.
inline constexpr int64_t kMoneyMax = 1'000'000'000'000'000'000;
inline constexpr int64_t kRateMax = 1'000'000'000'000;

// What a class saves up at most.
inline __int128 cap_of(int64_t rate, uint64_t charge_max_ns) {
    return static_cast<__int128>(rate) * (charge_max_ns / 1000) / 1'000'000;
}

inline constexpr uint8_t kFreeClass = shm::kClasses;
inline constexpr uint8_t kNoClass = 255;  // not in this pass
inline constexpr uint32_t kClassesAndFree = shm::kClasses + 1;

struct Ends {
    uint32_t head = shm::kNoRow;
    uint32_t tail = shm::kNoRow;
};

struct Crowd {
    bool in_use = false;
    uint8_t waits_at = kNoClass;  // class in the pass that runs
    uint16_t units = 1;
    uint32_t pool = 0;
    uint32_t account = shm::kNoRow;
    uint32_t base = shm::kNoRow;
    uint32_t preferred = shm::kNoRow;
    uint32_t quality = 0;
    uint32_t members = 0;  // claims that are its, waiting or not
    uint32_t waiting = 0;
    uint32_t place = shm::kNoRow;  // among the pool's crowds that wait
    uint32_t fanout = 0;
    uint32_t tenant = shm::kNoRow;  // of its pool and account, once a claim of it has run
    uint8_t holds_at = kNoClass;    // idle slots back, at that class, in the pass that runs
    bool was_listed = false;        // when the last pass ended
    uint64_t examined_ns = 0;
    ClaimLine claims;  // those that wait
    // Which of the pool's first 64 stalls have its base labels, and which the preferred ones as
    // well; as of this version of their list.
    mutable uint32_t stalls_version = 0;
    mutable uint64_t served_by = 0;
    mutable uint64_t provisioned_by = 0;
};

struct Stall {
    bool in_use = false;
    bool held_back = false;  // for the pass that runs
    bool held_for_step = false;
    uint32_t held_by = shm::kNoRow;  // the crowd, while held_back
    uint32_t pool = 0;
    uint32_t place = 0;  // among the pool's stalls
    uint32_t labels = shm::kNoRow;
    uint32_t slots = 0;
    Ends idle;
    Ends leased;                                        // the one granted first at the head
    std::array<uint32_t, kClassesAndFree> leases = {};  // roots

    void let_go() {
        held_back = held_for_step = false;
        held_by = shm::kNoRow;
    }
};

struct Tenant {
    bool in_use = false;
    uint32_t pool = 0;
    uint32_t account = shm::kNoRow;
    uint32_t units_total = 0;
    uint32_t place = shm::kNoRow;  // among the pool's tenants with leases
    bool is_stale = false;         // what follows may be wrong
    bool is_due = false;           // a pass may move its leases
    uint64_t quiet_until_us = 0;   // no pass before this may
    std::array<uint32_t, kClassesAndFree> units = {};
    std::array<uint32_t, kClassesAndFree> leases = {};  // roots
};

// A pool's tenants whose leases a pass may have to move to another class.
struct TenantWatch {
    std::vector<uint32_t> stale;  // those that have changed
    std::vector<uint32_t> due;
    uint64_t quiet_until_us = 0;  // the least of all other classes
};

// The first 64 of a pool's stalls, a bit each.
struct StallBits {
    uint32_t version = 1;  // of the list
    uint64_t idle = 0;     // has idle slots
};

struct Fanout {
    bool in_use = false;
    uint32_t pool = 0;
    uint32_t account = shm::kNoRow;
    uint64_t labels = 0;  // a hash of both sets' union
    uint32_t crowds = 0;
    uint32_t units = 0;  // at a class below free
};

// A configured limit: n slots for each label that begins with "key:"; "*:" is every slot's.
struct LabelLimit {
    std::string prefix;
    uint32_t limit;
};

// Where the pass over a pool stands. It outlives a cut turn, not the process: a successor begins
// the pass anew.
struct AccountPass {
    enum class Step : uint8_t { kStart, kProvisioned, kAny, kReprioritise, kPreempt, kSpill, kEnd };
    uint32_t pool = shm::kNoRow;
    uint8_t at_class = 0;
    Step step = Step::kStart;
    uint32_t next_account = 0;   // reprioritise: the first one not yet done
    bool stopped = false;        // no lease row, or too many unconfirmed
    bool held_for_step = false;  // of some stall
    uint8_t classes = 0;         // a bit for each that something waits at, or did
    uint8_t two_steps = 0;       // and for each whose slots are chosen in two steps
    bool requeued = false;
    // A claim that ends with the pass keeps slots, or the service, from other claims; or a claim
    // keeps slots that it would not hold back any more.
    bool kept_in_vain = false;
    // A lease that the pass demoted to free, or ended, used up fan-out: claims of its account may
    // be of a better class now than the pass took them for.
    bool fanout_freed = false;
};

struct AccountBook {
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

    // Accounts, by row.
    std::vector<uint32_t> account_uses;
    std::vector<uint32_t> account_waits;  // claims
    std::vector<uint32_t> changed;        // those changed since they were last published
    std::vector<uint8_t> is_changed;
    std::vector<std::array<int64_t, shm::kClasses>> caps;
    std::vector<std::vector<LabelLimit>> limits;
    std::vector<std::unordered_map<uint64_t, uint32_t>> label_units;  // (pool, label) → slots held
    // How often its limits have been set, and, by slot row, as of which of these times the account
    // that holds the slot came to hold it. What it held before may be more than they allow;
    // check_all() asks for nothing else.
    std::vector<uint32_t> limits_set;
    std::vector<uint32_t> held_since;
    std::vector<uint8_t> moving;     // a bit for each class that earns or pays
    std::vector<uint8_t> above_cap;  // is stepped turn by turn
    std::vector<uint32_t> above;     // those rows
    Index account_by_name;
    uint64_t stepped_us = 0;  // time of the last opening
    // When a balance changes what may be granted; computed when it is first asked for after a turn.
    bool crossing_known = false;
    uint64_t crossing_ns = 0;

    // Reported workers that hold nothing, by the instant at which they are forgotten.
    Timers forgotten;
    std::deque<KeptPull> kept_pulls;  // that go on before anything else is decided
    struct Pulling {
        uint32_t slot;
        uint32_t generation;
        uint64_t user_data;  // of the command
        std::vector<std::string> labels;
    };
    std::vector<Pulling> pulling;  // workers that asked in this turn
    size_t pulled = 0;             // those that have been told
    // Unconfirmed assignments to reported workers, slots by pool, in the order of their grants;
    // code that wants those of one instant in order of number sorts them.
    Chains assignments;
    std::unordered_map<uint64_t, std::string> errors;  // claim number → why its worker failed

    // Whether pools ordered by account are looked at: not while nothing of them has changed since a
    // pass that found nothing to do, and time changes nothing either (next_crossing).
    bool has_changed = true;  // since the last turn opened
    bool is_passing = false;
    bool has_refunded = false;  // in the pass: a claim that was looked at before may be served now
    bool is_held_back = false;  // every idle slot, by a claim that found too few
    bool looks = true;          // in this turn
    uint64_t looked_ns = 0;     // the last turn that could do without
    bool lacks_room = false;    // a claim could preempt, had the arena room for what it takes over

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
    void change_account(uint32_t account) {
        if (is_changed[account] != 0) return;
        is_changed[account] = 1;
        changed.push_back(account);
    }
    // The account comes to hold the slot, or to hold it at a class below free.
    void come_to_hold(uint32_t account, uint32_t slot) {
        if (account != shm::kNoRow) held_since[slot] = limits_set[account];
    }
    // What it holds, it held before them.
    void excuse_holdings(uint32_t account) { ++limits_set[account]; }
    void count_waiting(uint32_t account, int32_t claims) {
        if (account == shm::kNoRow) return;
        account_waits[account] += static_cast<uint32_t>(claims);
        change_account(account);
    }

  private:
    uint32_t fanout_for(uint32_t pool, uint32_t account, uint64_t union_hash);
    void drop_crowd(uint32_t crowd);
    void leave_stalls(uint32_t stall);
};

}  // namespace dibs::core
