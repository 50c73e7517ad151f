// broker/core/ledger/invariants.cpp -- states what holds for accounts and for what runs at a cost.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/ledger/invariants.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dibs::core {

using shm::ClaimState;
using shm::LeaseState;

uint32_t carried_cost(const Core::Parts& parts, const shm::ClaimRow& claim) {
    return parts.by_account(claim.pool) ? claim.carried_cost : kNoRow;
}

bool is_paid_for(const Core::Parts& parts, uint32_t row) {
    const shm::LeaseRow& lease = parts.state.leases[row];
    return lease.state != LeaseState::kFree && parts.by_account(lease.pool) &&
           (lease.flags & shm::LeaseFlag::kTaken) == 0;
}

void claim_in_ledger(const Core::Parts& parts, uint32_t row, Wrongs* wrongs) {
    const shm::ClaimRow& claim = parts.state.claims[row];
    if (claim.state != ClaimState::kRunning) return;
    const shm::LeaseRow& lease = parts.state.leases[claim.lease];
    const Subject it(wrongs, "claim", claim.arrival);
    it.expect(lease.session == claim.session && lease.tag == claim.tag,
              "runs under a lease that is not its own");
    it.expect(!is_paid_for(parts, claim.lease) || lease.account_class == claim.account_class,
              "runs at another class than its lease pays at");
}

void lease_in_ledger(const Core::Parts& parts, uint32_t row, Wrongs* wrongs) {
    const shm::LeaseRow& lease = parts.state.leases[row];
    if (lease.state == LeaseState::kFree || !parts.by_account(lease.pool)) return;
    const Subject it(wrongs, "lease of claim", lease.arrival);
    const uint32_t claim = parts.book->claim_of_lease[row];
    it.expect(claim < parts.state.claims.size() && parts.state.claims[claim].lease == row &&
                  parts.state.claims[claim].state == ClaimState::kRunning,
              "has no claim that runs");
    const bool revoking = lease.state == LeaseState::kRevoking;
    if (is_paid_for(parts, row)) {
        it.expect(!revoking, "is being revoked and not taken");
        const Cost cost = parts.cost_of(row);
        it.expect(std::all_of(cost.begin(), cost.end(), [](int64_t paid) { return paid >= 0; }),
                  "has a negative cost");
    } else {
        it.expect(revoking || lease.state == LeaseState::kKilling, "is taken and lives on");
        it.expect(lease.account_class == kFreeClass, "is being revoked and pays");
    }
}

namespace {

// Slots with a label that an account holds in a pool.
struct OfLabel {
    uint32_t units = 0;
    uint32_t limit = kNoRow;  // the lowest that it is held to
    bool newcomers = false;   // some of them came under it
};

uint32_t lowest_limit(const std::vector<LabelLimit>& limits, std::string_view label) {
    uint32_t lowest = kNoRow;
    for (const LabelLimit& limit : limits) {
        if (label.starts_with(limit.prefix)) lowest = std::min(lowest, limit.limit);
    }
    return lowest;
}

// How often each row is named.
std::vector<uint8_t> times_named(size_t rows, const std::vector<uint32_t>& list) {
    std::vector<uint8_t> times(rows);
    for (const uint32_t row : list)
        ++times[row];
    return times;
}

class LedgerInvariants {
  public:
    LedgerInvariants(const Core::Parts& parts, Wrongs* wrongs)
        : parts_(parts),
          state_(parts.state),
          book_(*parts.book),
          wrongs_(wrongs),
          of_account_(state_.accounts.size()),
          of_tenant_(book_.tenants.size()) {}

    void check(bool has_pools) {
        count_uses();
        if (has_pools) count_leases();
        accounts();
        if (!has_pools) return;
        tenants();
        watches();
        label_units();
        crossing();
    }

  private:
    struct OfAccount {
        uint32_t uses = 0;
        uint32_t held = 0;  // slots
        uint32_t tenants = 0;
        std::array<uint32_t, shm::kClasses> running{};
    };
    struct OfTenant {
        std::array<uint32_t, kClassesAndFree> units{};
        std::array<uint32_t, kClassesAndFree> leases{};
    };

    void count_uses();
    void count_leases();
    void accounts();
    void account(uint32_t row);
    void account_class(uint32_t row, uint32_t at_class, const Subject& it);
    void limits_of(uint32_t row, const Subject& it);
    void tenants();
    void tenant(uint32_t row, const Subject& it);
    void watches();
    void watched(const Tenant& tenant, const Subject& it);
    void label_units();
    void crossing();

    const Core::Parts& parts_;
    const State& state_;
    AccountBook& book_;  // its queries change what it caches
    Wrongs* wrongs_;
    std::vector<OfAccount> of_account_;
    std::vector<OfTenant> of_tenant_;
};

void LedgerInvariants::count_uses() {
    for (uint32_t row = 0; row < state_.sessions.size(); ++row) {
        const shm::SessionRow& session = state_.sessions[row];
        const bool is_there = session.state != shm::SessionState::kFree;
        if (is_there && session.account != kNoRow) ++of_account_[session.account].uses;
    }
    for (uint32_t row = 0; row < state_.claims.size(); ++row) {
        const shm::ClaimRow& claim = state_.claims[row];
        const bool is_there = book_.crowd_of_claim[row] != kNoRow;
        if (is_there && claim.account != kNoRow) ++of_account_[claim.account].uses;
    }
}

void LedgerInvariants::count_leases() {
    for (uint32_t row = 0; row < state_.leases.size(); ++row) {
        const shm::LeaseRow& lease = state_.leases[row];
        if (!is_paid_for(parts_, row) || lease.account == kNoRow) continue;
        OfAccount& account = of_account_[lease.account];
        account.held += lease.units;
        if (lease.account_class < kFreeClass) account.running[lease.account_class] += lease.units;
        const uint32_t tenant = book_.find_tenant(lease.pool, lease.account);
        Subject(wrongs_, "lease of claim", lease.arrival)
            .expect(tenant != kNoRow, "is no tenant's");
        if (tenant == kNoRow) continue;
        of_tenant_[tenant].units[lease.account_class] += lease.units;
        ++of_tenant_[tenant].leases[lease.account_class];
    }
}

void LedgerInvariants::accounts() {
    const std::vector<uint8_t> changed = times_named(of_account_.size(), book_.changed);
    const std::vector<uint8_t> above = times_named(of_account_.size(), book_.above);
    for (uint32_t row = 0; row < of_account_.size(); ++row) {
        const Subject it(wrongs_, "account row", row);
        it.expect(changed[row] == book_.is_changed[row], "is marked as changed and not listed");
        if (state_.accounts[row].state == 0) {
            it.expect(of_account_[row].uses == 0, "is free and in use");
            continue;
        }
        it.expect(above[row] == book_.above_cap[row], "is marked as above its cap and not listed");
        account(row);
    }
}

void LedgerInvariants::account(uint32_t row) {
    const shm::AccountRow& account = state_.accounts[row];
    const OfAccount& counted = of_account_[row];
    const Subject it(wrongs_, "account", name_of(account));
    it.expect(parts_.find_account(name_of(account)) == row, "is not found by its name");
    it.expect(counted.uses == book_.account_uses[row], "is used by another number");
    const bool is_zero =
        std::all_of(account.rate, account.rate + shm::kClasses, std::logical_not<>()) &&
        std::all_of(account.balance, account.balance + shm::kClasses, std::logical_not<>());
    const bool is_bare = account.label_limits == kNoRow && account.fanout_max == 0 && is_zero;
    const bool is_configured = (account.flags & shm::AccountFlag::kConfigured) != 0;
    it.expect(is_configured || counted.uses != 0, "is there and nobody knows it");
    it.expect(is_configured || is_bare, "is not configured and has terms");
    it.expect_count("slots held", counted.held, account.held);
    it.expect(account.charged_ns <= parts_.now_ns, "is charged for a time to come");
    bool is_above = false;
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        account_class(row, p, it);
        is_above = is_above || (account.rate[p] > 0 && account.running[p] > 0 &&
                                account.balance[p] > book_.caps[row][p]);
    }
    it.expect(!is_above || book_.above_cap[row] != 0,
              "is above its cap and not stepped turn by turn");
    limits_of(row, it);
}

void LedgerInvariants::account_class(uint32_t row, uint32_t p, const Subject& it) {
    const shm::AccountRow& account = state_.accounts[row];
    const bool moves = account.rate[p] != 0 || account.running[p] != 0;
    it.expect(moves == ((book_.moving[row] >> p & 1U) != 0), [&] {
        return "class " + std::to_string(p) + " moves, or does not, against what is known";
    });
    it.expect(of_account_[row].running[p] == account.running[p],
              [&] { return "class " + std::to_string(p) + " runs on another number of slots"; });
    it.expect(book_.caps[row][p] == cap_of(account.rate[p], account.charge_max_ns),
              "has another cap");
}

// "key", a zero byte, four bytes of limit; one after the other.
void LedgerInvariants::limits_of(uint32_t row, const Subject& it) {
    const shm::AccountRow& account = state_.accounts[row];
    std::string stored(account.label_limits_size, '\0');
    if (!stored.empty()) {
        parts_.arena.copy(account.label_limits,
                          account.label_limits_size,
                          reinterpret_cast<std::byte*>(stored.data()));
    }
    std::string kept;
    for (const LabelLimit& limit : book_.limits[row]) {
        kept += limit.prefix.substr(0, limit.prefix.size() - 1);
        kept += '\0';
        kept.append(reinterpret_cast<const char*>(&limit.limit), sizeof(limit.limit));
    }
    it.expect(stored == kept, "is held to other limits");
}

void LedgerInvariants::tenants() {
    std::vector<uint32_t> of_pool(state_.pools.size());
    for (uint32_t row = 0; row < book_.tenants.size(); ++row) {
        const Tenant& known = book_.tenants[row];
        const Subject it(wrongs_, "tenant", row);
        it.expect(known.in_use || of_tenant_[row].units == OfTenant{}.units,
                  "is free and has leases");
        if (!known.in_use) continue;
        of_pool[known.pool] += known.units_total != 0 ? 1 : 0;
        ++of_account_[known.account].tenants;
        tenant(row, it);
    }
    for (uint32_t pool = 0; pool < state_.pools.size(); ++pool) {
        Subject(wrongs_, "pool", name_of(state_.pools[pool]))
            .expect(book_.tenants_of_pool[pool].size() == of_pool[pool],
                    "has another number of tenants");
    }
    for (uint32_t row = 0; row < of_account_.size(); ++row) {
        Subject(wrongs_, "account row", row)
            .expect(book_.tenants_of_account[row].size() == of_account_[row].tenants,
                    "has another number of tenants");
    }
}

void LedgerInvariants::tenant(uint32_t row, const Subject& it) {
    const Tenant& known = book_.tenants[row];
    const OfTenant& counted = of_tenant_[row];
    const std::vector<uint32_t>& places = book_.tenants_of_pool[known.pool];
    const std::vector<uint32_t>& own = book_.tenants_of_account[known.account];
    it.expect(known.units == counted.units, "counts its units wrong");
    it.expect(known.units_total == std::accumulate(known.units.begin(), known.units.end(), 0U),
              "sums its units up wrong");
    const bool stands = known.place < places.size() && places[known.place] == row;
    it.expect(stands == (known.units_total != 0), "is at another place of its pool");
    it.expect(std::count(own.begin(), own.end(), row) == 1, "is not one of its account's");
    it.expect(book_.find_tenant(known.pool, known.account) == row, "is not found by its account");
    for (uint32_t at_class = 0; at_class < kClassesAndFree; ++at_class) {
        const auto is_own = [&](uint32_t lease) {
            return state_.leases[lease].pool == known.pool &&
                   state_.leases[lease].account == known.account &&
                   state_.leases[lease].account_class == at_class;
        };
        it.expect(
            is_cheapest_first(parts_,
                              book_.tenant_leases,
                              known.leases[at_class],
                              counted.leases[at_class],
                              is_own),
            [&] { return "lists its leases of class " + std::to_string(at_class) + " wrong"; });
    }
}

void LedgerInvariants::watches() {
    std::vector<uint32_t> stale;
    std::vector<uint32_t> due;
    for (const TenantWatch& watch : book_.watches) {
        stale.insert(stale.end(), watch.stale.begin(), watch.stale.end());
        due.insert(due.end(), watch.due.begin(), watch.due.end());
    }
    const std::vector<uint8_t> is_stale = times_named(book_.tenants.size(), stale);
    const std::vector<uint8_t> is_due = times_named(book_.tenants.size(), due);
    for (uint32_t row = 0; row < book_.tenants.size(); ++row) {
        const Tenant& tenant = book_.tenants[row];
        if (!tenant.in_use) continue;
        const Subject it(wrongs_, "tenant", row);
        it.expect(!tenant.is_stale || is_stale[row] != 0, "is stale and nobody looks at it again");
        it.expect(!tenant.is_due || is_due[row] == 1, "is due and in no list of those");
        if (!tenant.is_stale && !tenant.is_due) watched(tenant, it);
    }
}

// Until the pool's tenants are looked at again, no pass could move a lease of this one.
void LedgerInvariants::watched(const Tenant& tenant, const Subject& it) {
    const shm::AccountRow& account = state_.accounts[tenant.account];
    const shm::PoolRow& pool = state_.pools[tenant.pool];
    const bool is_asleep = parts_.now_ns / 1000 < book_.watches[tenant.pool].quiet_until_us &&
                           tenant.units_total != 0 &&
                           (account.flags & shm::AccountFlag::kConfigured) != 0;
    if (!is_asleep) return;
    uint32_t worse = tenant.units_total;
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        worse -= tenant.units[p];
        const int64_t net = account.rate[p] - int64_t{1'000'000} * account.running[p];
        const int64_t balance = parts_.balance_at(tenant.account, p);
        const bool sinks = net < 0 && tenant.units[p] != 0 && balance < pool.demote_threshold;
        const bool rises = net > 0 && worse != 0 && balance > pool.promote_threshold;
        it.expect(!sinks && !rises,
                  [&] { return "is to change class " + std::to_string(p) + " and sleeps"; });
    }
}

// Where it has limits.
void LedgerInvariants::label_units() {
    std::vector<std::unordered_map<uint64_t, OfLabel>> counted(state_.accounts.size());
    for (uint32_t row = 0; row < state_.claims.size(); ++row) {
        const shm::ClaimRow& claim = state_.claims[row];
        if (book_.crowd_of_claim[row] == kNoRow || claim.account == kNoRow) continue;
        const std::vector<LabelLimit>& limits = book_.limits[claim.account];
        if (limits.empty()) continue;
        for (uint32_t slot = parts_.occupied_slot(row); slot != kNoRow;
             slot = parts_.next_occupied(row, slot)) {
            const bool came = book_.held_since[slot] == book_.limits_set[claim.account];
            each_counted_label(
                book_.labels.text(state_.slots[slot].label_set), [&](std::string_view label) {
                    OfLabel& held = counted[claim.account][label_key(claim.pool, label)];
                    if (held.units++ == 0) held.limit = lowest_limit(limits, label);
                    held.newcomers = held.newcomers || came;
                });
        }
    }
    for (uint32_t row = 0; row < state_.accounts.size(); ++row) {
        const auto& own = counted[row];
        bool agree = true;
        uint32_t found = 0;
        for (const auto& [key, units] : book_.label_units[row]) {
            const auto there = own.find(key);
            agree = agree && units == (there == own.end() ? 0 : there->second.units);
            found += units != 0 ? 1 : 0;
        }
        const Subject it(wrongs_, "account row", row);
        it.expect(agree && found == own.size(), "counts its labels wrong");
        const bool is_above = std::any_of(own.begin(), own.end(), [](const auto& label) {
            return label.second.newcomers && label.second.units > label.second.limit;
        });
        it.expect(!is_above, "holds more of a label than its limit");
    }
}

// An instant that is remembered is what would be worked out now.
void LedgerInvariants::crossing() {
    if (!book_.crossing_known) return;
    const uint64_t remembered_ns = book_.crossing_ns;
    book_.crossing_known = false;
    const uint64_t crossing_ns = parts_.next_crossing();
    book_.crossing_ns = remembered_ns;
    Subject(wrongs_, "when a balance changes")
        .expect_count("what may be granted", crossing_ns, remembered_ns);
}

}  // namespace

void check_ledger(const Core::Parts& parts, bool has_pools, Wrongs* wrongs) {
    LedgerInvariants(parts, wrongs).check(has_pools);
}

}  // namespace dibs::core
