// tests/naive/account_rows.cpp -- rows compared field by field, in pools ordered by account.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/account_rows.hpp"

#include <sstream>
#include <string_view>

namespace dibs::naive {

namespace {

std::ostream& operator<<(std::ostream& text, const Money& money) {
    for (const int64_t amount : money)
        text << amount << ' ';
    return text;
}

// Collects the first difference only.
class Difference {
  public:
    template <class Real, class Naive>
    void compare(const std::string& what, const Real& real, const Naive& naive) {
        if (!text_.empty() || real == naive) return;
        std::ostringstream text;
        text << what << ": core " << real << ", naive " << naive;
        text_ = text.str();
    }
    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    std::string text_;
};

std::string name_of_account(const core::Core& real, uint32_t row) {
    if (row == shm::kNoRow) return {};
    return {real.account(row).name, real.account(row).name_size};
}

void compare_accounts(const core::Core& real, const NaiveCore& naive, Difference& difference) {
    const auto known = naive.known_accounts();
    uint64_t rows = 0;
    for (uint32_t row = 0; row < real.accounts_max(); ++row)
        rows += real.account(row).state != 0;
    difference.compare("accounts known", rows, known.size());
    for (const auto& [name, account] : known) {
        const std::string who = "account " + name + " ";
        const uint32_t row = real.find_account(name);
        difference.compare(who + "place", row, account.place);
        if (row != account.place) return;
        const bool configured = (real.account(row).flags & shm::AccountFlag::kConfigured) != 0;
        difference.compare(who + "configured", configured, account.is_configured);
        difference.compare(who + "used", real.used_us(row), account.used_us);
        difference.compare(who + "balance", Money(real.balance(row)), account.balance);
        for (uint8_t at = 0; at < shm::kClasses; ++at) {
            difference.compare(who + "running at " + std::to_string(at),
                               int64_t{real.account(row).running[at]},
                               naive.running(name, at));
        }
    }
}

void compare_claims(const core::Core& real, const NaiveCore& naive, Difference& difference) {
    for (const auto& [number, claim] : naive.model().claims) {
        const Pool& pool = naive.model().pools[claim.pool];
        if (pool.config.order != shm::PoolOrder::kAccount) continue;
        const std::string who = "claim " + std::to_string(number) + " ";
        const uint32_t row = real.find_claim(number);
        difference.compare(who + "is there", row != shm::kNoRow, true);
        if (row == shm::kNoRow) return;
        const shm::ClaimRow& of = real.claim(row);
        difference.compare(who + "account", name_of_account(real, of.account), claim.account);
        difference.compare(who + "confirmed", of.confirmed_ns, claim.confirmed_ns);
        difference.compare(who + "enqueued", of.enqueued_ns, claim.enqueued_ns);
        if (claim.is_confirming || claim.is_promised) continue;
        difference.compare(who + "class", int{real.class_of(row)}, int{naive.class_of(claim)});
    }
}

void compare_leases(const core::Core& real,
                    const Player<core::Core>& player,
                    const NaiveCore& naive,
                    Difference& difference) {
    for (const auto& [number, lease] : naive.model().leases) {
        const auto row = static_cast<uint32_t>(player.lease_id(number));
        const shm::LeaseRow& of = real.lease(row);
        if (real.pool(of.pool).order != shm::PoolOrder::kAccount) continue;
        const std::string who = "lease of " + std::to_string(number) + " ";
        difference.compare(who + "account", name_of_account(real, of.account), lease.was.account);
        difference.compare(who + "class", int{of.account_class}, int{lease.account_class});
        difference.compare(who + "cost", Money(real.cost(row)), lease.cost);
        const bool revoking = of.state == shm::LeaseState::kRevoking;
        difference.compare(who + "revoking", revoking, lease.is_revoking && !lease.is_being_killed);
        const uint32_t claim = real.find_claim(number);
        difference.compare(who + "has its claim", claim != shm::kNoRow, true);
        if (claim == shm::kNoRow) return;
        difference.compare(
            who + "confirmed", real.claim(claim).confirmed_ns, lease.was.confirmed_ns);
    }
}

std::string joined(const Labels& labels) {
    std::string text;
    for (const std::string& label : labels)
        text += label + '\0';
    return text;
}

void compare_workers(const core::Core& real, const NaiveCore& naive, Difference& difference) {
    for (const auto& [id, slot] : naive.model().slots) {
        const Pool& pool = naive.model().pools[slot.pool];
        if (pool.config.order != shm::PoolOrder::kAccount || slot.name.empty()) continue;
        const std::string who = "worker " + slot.name + " of " + pool.name + " ";
        const uint32_t row = real.find_slot(real.find_pool(pool.name), slot.name);
        difference.compare(who + "is there", row != shm::kNoRow, true);
        if (row == shm::kNoRow) return;
        difference.compare(who + "labels", std::string(real.slot_labels(row)), joined(slot.labels));
        if (slot.session != shm::kNoRow) continue;
        difference.compare(who + "confirmed", real.slot(row).confirmed_ns, slot.confirmed_ns);
        difference.compare(who + "modified", real.slot(row).modified_ns, slot.modified_ns);
    }
}

}  // namespace

std::string account_difference(const core::Core& real,
                               const Player<core::Core>& player,
                               const NaiveCore& naive) {
    Difference difference;
    compare_accounts(real, naive, difference);
    compare_claims(real, naive, difference);
    compare_leases(real, player, naive, difference);
    compare_workers(real, naive, difference);
    return difference.text();
}

}  // namespace dibs::naive
