// broker/core/account_check.cpp -- the invariants of pools ordered by account: what the book says
// is counted again from the rows.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>

#include "broker/core/book_check.hpp"
#include "broker/core/parts.hpp"

namespace dibs::core {

using shm::ClaimState;
using shm::LeaseState;

namespace {

class AccountCheck {
  public:
    explicit AccountCheck(const Core::Parts& parts) : parts_(parts), state_(parts.state) {}

    // A takeover waits for it: where no pool is ordered by account no row is looked at.
    std::vector<std::string> run(bool has_pools) {
        for (uint32_t row = 0; has_pools && row < state_.claims.size(); ++row)
            claim(row);
        for (uint32_t row = 0; has_pools && row < state_.leases.size(); ++row)
            lease(row);
        for (uint32_t row = 0; has_pools && row < state_.slots.size(); ++row)
            slot(row);
        for (uint32_t row = 0; row < state_.accounts.size(); ++row)
            account(row);
        crowds();
        return wrongs_;
    }

  private:
    void expect(bool holds, const std::string& what) {
        if (!holds) wrongs_.push_back(what);
    }
    void claim(uint32_t row);
    void lease(uint32_t row);
    void slot(uint32_t row);
    void account(uint32_t row);
    void crowds();

    const Core::Parts& parts_;
    const State& state_;
    std::vector<std::string> wrongs_;
    std::map<uint32_t, std::array<uint32_t, shm::kClasses>> running_;  // by account
    std::map<uint32_t, uint32_t> held_;                                // slots, by account
    std::map<uint32_t, uint32_t> waits_;                               // claims, by account
    std::map<uint32_t, uint32_t> uses_;                                // of accounts
    std::map<uint32_t, uint32_t> waiting_;                             // by crowd
    std::map<uint32_t, uint32_t> members_;                             // by crowd
    std::map<uint32_t, uint32_t> fanout_;                              // units
    size_t by_number_ = 0;
};

void AccountCheck::claim(uint32_t row) {
    const shm::ClaimRow& claim = state_.claims[row];
    if (claim.state == ClaimState::kFree || !parts_.by_account(claim.pool)) return;
    const std::string who = "claim " + std::to_string(claim.arrival);
    ++by_number_;
    if (claim.account != kNoRow) ++uses_[claim.account];
    const uint32_t place = parts_.book->crowd_of_claim[row];
    if (place >= parts_.book->crowds.size()) return expect(false, who + " is in no crowd");
    const Crowd& crowd = parts_.book->crowds[place];
    expect(crowd.in_use && crowd.pool == claim.pool && crowd.account == claim.account &&
               crowd.base == claim.label_set && crowd.preferred == claim.preferred_set &&
               crowd.units == claim.units,
           who + " is in a crowd that is not like it");
    ++members_[place];
    if (claim.state == ClaimState::kWaiting) ++waiting_[place];
    if (claim.state == ClaimState::kPromised) {
        expect(claim.first_slot < state_.slots.size() &&
                   parts_.book->promised_to[claim.first_slot] == row,
               who + " is promised a slot that is promised to another");
    }
    if (claim.state == ClaimState::kRunning) {
        expect(claim.lease < state_.leases.size() &&
                   state_.leases[claim.lease].state != LeaseState::kFree &&
                   state_.leases[claim.lease].arrival == claim.arrival,
               who + " runs under a lease that is not its own");
    }
    if (parts_.occupied_slot(row) != kNoRow && claim.account_class < kFreeClass) {
        fanout_[crowd.fanout] += claim.units;
    }
}

void AccountCheck::lease(uint32_t row) {
    const shm::LeaseRow& lease = state_.leases[row];
    if (lease.state == LeaseState::kFree || !parts_.by_account(lease.pool)) return;
    const std::string who = "lease of claim " + std::to_string(lease.arrival);
    const uint32_t claim = parts_.book->claim_of_lease[row];
    expect(claim < state_.claims.size() && state_.claims[claim].lease == row &&
               state_.claims[claim].state == ClaimState::kRunning,
           who + " has no claim that runs");
    const bool taken = (lease.flags & shm::LeaseFlag::kTaken) != 0;
    expect(lease.state != LeaseState::kRevoking || taken, who + " is being revoked and not taken");
    expect(!taken || lease.state == LeaseState::kRevoking || lease.state == LeaseState::kKilling,
           who + " is taken and lives on");
    if (taken) {
        return expect(lease.account_class == kFreeClass, who + " is being revoked and pays");
    }
    for (const int64_t paid : parts_.cost_of(row))
        expect(paid >= 0, who + " has a negative cost");
    if (lease.account != kNoRow) held_[lease.account] += lease.units;
    if (lease.account != kNoRow && lease.account_class < kFreeClass) {
        running_[lease.account][lease.account_class] += lease.units;
    }
}

void AccountCheck::slot(uint32_t row) {
    const shm::SlotRow& slot = state_.slots[row];
    if (slot.state == SlotState::kFree || !parts_.by_account(slot.pool)) return;
    const std::string who = "slot row " + std::to_string(row);
    const uint32_t place = parts_.book->stall_of_slot[row];
    expect(place < parts_.book->stalls.size() && parts_.book->stalls[place].in_use &&
               parts_.book->stalls[place].pool == slot.pool &&
               parts_.book->stalls[place].labels == slot.label_set,
           who + " is in a stall with other labels");
    const bool idle_and_promised =
        slot.state == SlotState::kIdle && parts_.book->promised_to[row] != kNoRow;
    expect(!idle_and_promised, who + " is idle although it is promised");
    const bool assigned = (slot.flags & shm::SlotFlag::kAssigned) != 0;
    expect(!assigned || slot.state == SlotState::kLeased, who + " is assigned and not leased");
}

void AccountCheck::account(uint32_t row) {
    const shm::AccountRow& account = state_.accounts[row];
    if (account.state == 0) return expect(uses_[row] == 0, "a free account's row is in use");
    const std::string who = "account '" + std::string{account.name, account.name_size} + "'";
    for (uint32_t session = 0; session < state_.sessions.size(); ++session) {
        const shm::SessionRow& own = state_.sessions[session];
        if (own.state != shm::SessionState::kFree && own.account == row) ++uses_[row];
    }
    expect(uses_[row] == parts_.book->account_uses[row], who + " is used by another number");
    expect(uses_[row] != 0 || (account.flags & shm::AccountFlag::kConfigured) != 0,
           who + " is there and nobody knows it");
    expect(held_[row] == account.held,
           who + ": counted " + std::to_string(held_[row]) + " slots held, stored " +
               std::to_string(account.held));
    expect(account.charged_ns <= parts_.now_ns, who + " is charged for a time to come");
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        const bool moves = account.rate[p] != 0 || account.running[p] != 0;
        expect(moves == ((parts_.book->moving[row] >> p & 1U) != 0),
               who + " class " + std::to_string(p) + " moves, or does not, against what is known");
        expect(running_[row][p] == account.running[p],
               who + " class " + std::to_string(p) + ": counted " +
                   std::to_string(running_[row][p]) + " slots, stored " +
                   std::to_string(account.running[p]));
    }
}

void AccountCheck::crowds() {
    const AccountBook& book = *parts_.book;
    expect(by_number_ == book.claim_by_number.size(), "claims by number: another count");
    for (uint32_t place = 0; place < book.crowds.size(); ++place) {
        const Crowd& crowd = book.crowds[place];
        if (!crowd.in_use) continue;
        const std::string who = "crowd " + std::to_string(place);
        expect(crowd.members == members_[place], who + " has another number of members");
        uint32_t found = 0;
        uint64_t last = 0;
        crowd.claims.each([&](uint32_t row) {
            const uint64_t number = state_.claims[row].arrival;
            expect(number > last, who + " is out of order");
            expect(crowd.claims.count_before(number) == found, who + " counts its places wrong");
            last = number;
            ++found;
        });
        const auto late = static_cast<uint32_t>(
            std::count_if(book.come_back.begin(), book.come_back.end(), [&](uint32_t claim) {
                return book.crowd_of_claim[claim] == place;
            }));
        if (crowd.account != kNoRow) waits_[crowd.account] += crowd.waiting;
        expect(found == crowd.waiting && found + late == waiting_[place],
               who + " has another number of waiting claims");
        expect(book.fanouts[crowd.fanout].units == fanout_[crowd.fanout],
               who + ": its fan-out is counted wrong");
    }
    for (uint32_t row = 0; row < state_.accounts.size(); ++row) {
        expect(waits_[row] == book.account_waits[row],
               "account row " + std::to_string(row) + ": its waiting claims are counted wrong");
    }
}

}  // namespace

std::vector<std::string> Core::Parts::check_accounts() const {
    bool has_pools = false;
    for (uint32_t pool = 0; pool < state.counters->pools; ++pool)
        has_pools = has_pools || by_account(pool);
    const std::vector<std::string> wrongs = AccountCheck{*this}.run(has_pools);
    return wrongs.empty() ? BookCheck{*this}.run(has_pools) : wrongs;
}

}  // namespace dibs::core
