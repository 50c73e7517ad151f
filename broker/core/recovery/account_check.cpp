// broker/core/recovery/account_check.cpp -- recounts the account book from the rows and compares.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include "broker/core/parts.hpp"
#include "broker/core/recovery/book_check.hpp"

namespace dibs::core {

using shm::ClaimState;
using shm::LeaseState;

namespace {

class AccountCheck {
  public:
    explicit AccountCheck(const Core::Parts& parts)
        : parts_(parts),
          state_(parts.state),
          running_(state_.accounts.size()),
          held_(state_.accounts.size()),
          waits_(state_.accounts.size()),
          uses_(state_.accounts.size()),
          waiting_(parts.book->crowds.size()),
          members_(parts.book->crowds.size()),
          fanout_(parts.book->fanouts.size()),
          newcomers_(parts.book->fanouts.size()) {}

    // A takeover waits for it: where no pool is ordered by account no row is looked at.
    std::vector<std::string> run(bool has_pools) {
        if (has_pools) listed_.resize(state_.slots.size());
        for (uint32_t pool = 0; has_pools && pool < state_.counters->pools; ++pool)
            held_over(pool);
        for (uint32_t row = 0; has_pools && row < state_.claims.size(); ++row)
            claim(row);
        for (uint32_t row = 0; has_pools && row < state_.leases.size(); ++row)
            lease(row);
        for (uint32_t row = 0; has_pools && row < state_.slots.size(); ++row)
            slot(row);
        sessions();
        for (uint32_t row = 0; row < state_.accounts.size(); ++row)
            account(row);
        crowds();
        return wrongs_;
    }

  private:
    // What is wrong is only put into words when it is.
    template <class What>
    void expect(bool holds, const What& what) {
        core::expect(&wrongs_, holds, what);
    }
    [[nodiscard]] bool came_under_limits(uint32_t account, uint32_t slot) const {
        const AccountBook& book = *parts_.book;
        return account != kNoRow && slot < book.held_since.size() &&
               book.held_since[slot] == book.limits_set[account];
    }
    void held_over(uint32_t pool);
    void claim(uint32_t row);
    void promised_claim(uint32_t row);
    [[nodiscard]] bool is_given_up(uint32_t row) const;
    void running_claim(uint32_t row);
    void lease(uint32_t row);
    void slot(uint32_t row);
    void held_over_slot(uint32_t row);
    void sessions();
    void account(uint32_t row);
    void crowds();

    const Core::Parts& parts_;
    const State& state_;
    std::vector<std::string> wrongs_;
    std::vector<std::array<uint32_t, shm::kClasses>> running_;  // by account
    std::vector<uint32_t> held_;                                // slots, by account
    std::vector<uint32_t> waits_;                               // claims, by account
    std::vector<uint32_t> uses_;                                // of accounts
    std::vector<uint32_t> waiting_;                             // by crowd
    std::vector<uint32_t> members_;                             // by crowd
    std::vector<uint32_t> fanout_;                              // units
    std::vector<uint8_t> newcomers_;  // fan-out → some of them came under its limit
    std::vector<uint8_t> listed_;     // slot → its pool's list of those held over has it
    size_t by_number_ = 0;
};

// The list may name slots that are held over no more, and rows that are another pool's by now.
void AccountCheck::held_over(uint32_t pool) {
    for (const uint32_t row : parts_.book->held_over[pool]) {
        if (state_.slots[row].pool != pool) continue;
        expect(listed_[row] == 0,
               [&] { return "slot row " + std::to_string(row) + " is listed twice as held over"; });
        listed_[row] = 1;
    }
}

void AccountCheck::claim(uint32_t row) {
    const shm::ClaimRow& claim = state_.claims[row];
    if (claim.state == ClaimState::kFree || !parts_.by_account(claim.pool)) return;
    const auto who = [&] { return "claim " + std::to_string(claim.arrival); };
    ++by_number_;
    if (claim.account < uses_.size()) ++uses_[claim.account];
    const uint32_t place = parts_.book->crowd_of_claim[row];
    if (place >= parts_.book->crowds.size()) {
        return expect(false, [&] { return who() + " is in no crowd"; });
    }
    const Crowd& crowd = parts_.book->crowds[place];
    expect(crowd.in_use && crowd.pool == claim.pool && crowd.account == claim.account &&
               crowd.base == claim.label_set && crowd.preferred == claim.preferred_set &&
               crowd.units == claim.units,
           [&] { return who() + " is in a crowd that is not like it"; });
    ++members_[place];
    if (claim.state == ClaimState::kWaiting) ++waiting_[place];
    if (claim.state == ClaimState::kPromised) promised_claim(row);
    if (claim.state == ClaimState::kRunning) running_claim(row);
    const uint32_t slot = parts_.occupied_slot(row);
    if (slot != kNoRow && claim.account_class < kFreeClass) {
        fanout_[crowd.fanout] += claim.units;
        if (came_under_limits(claim.account, slot)) newcomers_[crowd.fanout] = 1;
    }
}

void AccountCheck::promised_claim(uint32_t row) {
    const shm::ClaimRow& claim = state_.claims[row];
    const auto who = [&] { return "claim " + std::to_string(claim.arrival); };
    if (claim.first_slot >= state_.slots.size() ||
        parts_.book->promised_to[claim.first_slot] != row) {
        return expect(false,
                      [&] { return who() + " is promised a slot that is promised to another"; });
    }
    expect(is_given_up(claim.first_slot),
           [&] { return who() + " is promised a slot that somebody keeps"; });
}

// The slot has no holder, or its lease is being taken for a better claim.
bool AccountCheck::is_given_up(uint32_t row) const {
    const shm::SlotRow& slot = state_.slots[row];
    if (slot.state == SlotState::kReserved) return false;
    if (slot.state != SlotState::kLeased) return true;
    return slot.holder < state_.leases.size() &&
           (state_.leases[slot.holder].flags & shm::LeaseFlag::kTaken) != 0;
}

void AccountCheck::running_claim(uint32_t row) {
    const shm::ClaimRow& claim = state_.claims[row];
    const auto who = [&] { return "claim " + std::to_string(claim.arrival); };
    if (claim.lease >= state_.leases.size() ||
        state_.leases[claim.lease].state == LeaseState::kFree ||
        state_.leases[claim.lease].arrival != claim.arrival ||
        state_.leases[claim.lease].session != claim.session ||
        state_.leases[claim.lease].tag != claim.tag) {
        return expect(false, [&] { return who() + " runs under a lease that is not its own"; });
    }
    const shm::LeaseRow& lease = state_.leases[claim.lease];
    expect(
        (lease.flags & shm::LeaseFlag::kTaken) != 0 || lease.account_class == claim.account_class,
        [&] { return who() + " runs at another class than its lease pays at"; });
}

void AccountCheck::lease(uint32_t row) {
    const shm::LeaseRow& lease = state_.leases[row];
    if (lease.state == LeaseState::kFree || !parts_.by_account(lease.pool)) return;
    const auto who = [&] { return "lease of claim " + std::to_string(lease.arrival); };
    const uint32_t claim = parts_.book->claim_of_lease[row];
    expect(claim < state_.claims.size() && state_.claims[claim].lease == row &&
               state_.claims[claim].state == ClaimState::kRunning,
           [&] { return who() + " has no claim that runs"; });
    const bool taken = (lease.flags & shm::LeaseFlag::kTaken) != 0;
    expect(lease.state != LeaseState::kRevoking || taken,
           [&] { return who() + " is being revoked and not taken"; });
    expect(!taken || lease.state == LeaseState::kRevoking || lease.state == LeaseState::kKilling,
           [&] { return who() + " is taken and lives on"; });
    if (taken) {
        return expect(lease.account_class == kFreeClass,
                      [&] { return who() + " is being revoked and pays"; });
    }
    for (const int64_t paid : parts_.cost_of(row))
        expect(paid >= 0, [&] { return who() + " has a negative cost"; });
    if (lease.account == kNoRow) return;
    if (lease.account >= held_.size()) {
        return expect(false, [&] { return who() + " names an account that is not there"; });
    }
    held_[lease.account] += lease.units;
    if (lease.account_class < kFreeClass) {
        running_[lease.account][lease.account_class] += lease.units;
    }
}

void AccountCheck::slot(uint32_t row) {
    const shm::SlotRow& slot = state_.slots[row];
    if (slot.state == SlotState::kFree || !parts_.by_account(slot.pool)) return;
    const auto who = [&] { return "slot row " + std::to_string(row); };
    const uint32_t place = parts_.book->stall_of_slot[row];
    expect(place < parts_.book->stalls.size() && parts_.book->stalls[place].in_use &&
               parts_.book->stalls[place].pool == slot.pool &&
               parts_.book->stalls[place].labels == slot.label_set,
           [&] { return who() + " is in a stall with other labels"; });
    const bool idle_and_promised =
        slot.state == SlotState::kIdle && parts_.book->promised_to[row] != kNoRow;
    expect(!idle_and_promised, [&] { return who() + " is idle although it is promised"; });
    if ((slot.flags & shm::SlotFlag::kSaidReady) != 0) held_over_slot(row);
    const bool assigned = (slot.flags & shm::SlotFlag::kAssigned) != 0;
    expect(!assigned || slot.state == SlotState::kLeased,
           [&] { return who() + " is assigned and not leased"; });
}

// Its worker has said ready. A free slot that nothing else stops is held over, until its worker may
// be asked.
void AccountCheck::held_over_slot(uint32_t row) {
    constexpr auto kStops =
        static_cast<uint8_t>(shm::SlotFlag::kProtected | shm::SlotFlag::kUnqualified);
    const shm::SlotRow& slot = state_.slots[row];
    if ((slot.flags & kStops) != 0 || slot.holder != kNoRow) return;
    const auto who = [&] { return "slot row " + std::to_string(row); };
    if (!parts_.is_held_over(row)) {
        return expect(false, [&] {
            return who() + " has said ready, is not idle, and held over for nobody";
        });
    }
    expect(listed_[row] != 0,
           [&] { return who() + " is held over for a claim and would never be handed over"; });
    const bool is_due = parts_.dirty.first(slot.pool) == slot.pool;  // a pass comes
    expect(is_due || !may_ask(state_.pools[slot.pool], 1),
           [&] { return who() + " is held over though its worker may be asked"; });
}

void AccountCheck::sessions() {
    for (uint32_t row = 0; row < state_.sessions.size(); ++row) {
        const shm::SessionRow& session = state_.sessions[row];
        const bool is_there = session.state != shm::SessionState::kFree;
        if (is_there && session.account < uses_.size()) ++uses_[session.account];
    }
}

void AccountCheck::account(uint32_t row) {
    const shm::AccountRow& account = state_.accounts[row];
    if (account.state == 0) {
        return expect(uses_[row] == 0,
                      [] { return std::string("a free account's row is in use"); });
    }
    const auto who = [&] {
        return "account '" + std::string{account.name, account.name_size} + "'";
    };
    expect(uses_[row] == parts_.book->account_uses[row],
           [&] { return who() + " is used by another number"; });
    expect(uses_[row] != 0 || (account.flags & shm::AccountFlag::kConfigured) != 0,
           [&] { return who() + " is there and nobody knows it"; });
    const bool is_bare =
        account.label_limits == kNoRow && account.fanout_max == 0 &&
        std::all_of(
            account.rate, account.rate + shm::kClasses, [](int64_t of) { return of == 0; }) &&
        std::all_of(
            account.balance, account.balance + shm::kClasses, [](int64_t of) { return of == 0; });
    expect(is_bare || (account.flags & shm::AccountFlag::kConfigured) != 0,
           [&] { return who() + " is not configured and has terms"; });
    expect(held_[row] == account.held, [&] {
        return who() + ": counted " + std::to_string(held_[row]) + " slots held, stored " +
               std::to_string(account.held);
    });
    expect(account.charged_ns <= parts_.now_ns,
           [&] { return who() + " is charged for a time to come"; });
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        const bool moves = account.rate[p] != 0 || account.running[p] != 0;
        expect(moves == ((parts_.book->moving[row] >> p & 1U) != 0), [&] {
            return who() + " class " + std::to_string(p) +
                   " moves, or does not, against what is known";
        });
        expect(running_[row][p] == account.running[p], [&] {
            return who() + " class " + std::to_string(p) + ": counted " +
                   std::to_string(running_[row][p]) + " slots, stored " +
                   std::to_string(account.running[p]);
        });
    }
}

void AccountCheck::crowds() {
    const AccountBook& book = *parts_.book;
    expect(by_number_ == book.claim_by_number.size(),
           [] { return std::string("claims by number: another count"); });
    for (uint32_t place = 0; place < book.crowds.size(); ++place) {
        const Crowd& crowd = book.crowds[place];
        if (!crowd.in_use) continue;
        const auto who = [&] { return "crowd " + std::to_string(place); };
        expect(crowd.members == members_[place],
               [&] { return who() + " has another number of members"; });
        uint32_t found = 0;
        uint64_t last = 0;
        crowd.claims.each([&](uint32_t row) {
            const uint64_t number = state_.claims[row].arrival;
            expect(number > last, [&] { return who() + " is out of order"; });
            expect(crowd.claims.count_before(number) == found,
                   [&] { return who() + " counts its places wrong"; });
            last = number;
            ++found;
        });
        const auto late = static_cast<uint32_t>(
            std::count_if(book.come_back.begin(), book.come_back.end(), [&](uint32_t claim) {
                return book.crowd_of_claim[claim] == place;
            }));
        if (crowd.account != kNoRow) waits_[crowd.account] += crowd.waiting;
        expect(found == crowd.waiting && found + late == waiting_[place],
               [&] { return who() + " has another number of waiting claims"; });
        const uint32_t units = fanout_[crowd.fanout];
        expect(book.fanouts[crowd.fanout].units == units,
               [&] { return who() + ": its fan-out is counted wrong"; });
        const uint32_t most =
            crowd.account == kNoRow ? 0 : state_.accounts[crowd.account].fanout_max;
        expect(most == 0 || units <= most || newcomers_[crowd.fanout] == 0,
               [&] { return who() + ": its fan-out is above its limit"; });
    }
    for (uint32_t row = 0; row < state_.accounts.size(); ++row) {
        expect(waits_[row] == book.account_waits[row], [&] {
            return "account row " + std::to_string(row) + ": its waiting claims are counted wrong";
        });
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
