// broker/core/ledger/account_look.cpp -- answers queries about accounts, their claims and leases.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/parts.hpp"

namespace dibs::core {

std::span<const int64_t> Core::decided_amounts(const Decision& decision) const {
    const std::span<const int64_t> all{parts_->decided_amounts};
    if (decision.kind == DecisionKind::kGrant || decision.kind == DecisionKind::kAssign ||
        decision.kind == DecisionKind::kCreate) {
        return all.subspan(decision.resources_begin, decision.resources_count);
    }
    assert(decision.slots_begin + shm::kClasses <= parts_->decided_amounts.size());
    return std::span{parts_->decided_amounts}.subspan(decision.slots_begin, shm::kClasses);
}

uint32_t Core::find_account(std::string_view name) const {
    return parts_->find_account(name);
}

uint32_t Core::accounts_max() const {
    return parts_->state.accounts.size();
}

const shm::AccountRow& Core::account(AccountId row) const {
    return parts_->state.accounts[row];
}

Cost Core::balance(AccountId account) const {
    Cost balance;
    for (uint32_t p = 0; p < shm::kClasses; ++p)
        balance[p] = parts_->balance_at(account, p);
    return balance;
}

uint64_t Core::used_us(AccountId account) const {
    return parts_->used_us(account);
}

uint32_t Core::waiting_of(AccountId account) const {
    return parts_->book ? parts_->book->account_waits[account] : 0;
}

uint32_t Core::uses_of(AccountId account) const {
    return parts_->book ? parts_->book->account_uses[account] : 0;
}

uint8_t Core::best_class(AccountId account) const {
    return parts_->book ? parts_->best_class(account) : kFreeClass;
}

std::vector<std::pair<std::string, uint32_t>> Core::label_limits(AccountId account) const {
    std::vector<std::pair<std::string, uint32_t>> limits;
    if (!parts_->book) return limits;
    for (const LabelLimit& limit : parts_->book->limits[account])
        limits.emplace_back(limit.prefix.substr(0, limit.prefix.size() - 1), limit.limit);
    return limits;
}

std::span<const uint32_t> Core::changed_accounts() const {
    if (!parts_->book) return {};
    return parts_->book->changed;
}

void Core::forget_changed_accounts() {
    if (!parts_->book) return;
    for (const uint32_t row : parts_->book->changed)
        parts_->book->is_changed[row] = 0;
    parts_->book->changed.clear();
}

Cost Core::cost(uint32_t lease) const {
    return parts_->cost_of(lease);
}

uint32_t Core::find_claim(ClaimNumber number) const {
    return parts_->find_claim(number);
}

uint8_t Core::class_of(uint32_t claim) const {
    const shm::ClaimRow& row = parts_->state.claims[claim];
    if (!parts_->by_account(row.pool)) return kFreeClass;
    if (row.state != shm::ClaimState::kWaiting) return row.account_class;
    const AccountBook& book = *parts_->book;
    const uint8_t now = parts_->class_now(book.crowds[book.crowd_of_claim[claim]]);
    return now == kNoClass ? kFreeClass : now;
}

TimeNs Core::examined_ns(uint32_t claim) const {
    if (!parts_->by_account(parts_->state.claims[claim].pool)) return 0;
    const AccountBook& book = *parts_->book;
    return book.examined_ns(book.crowds[book.crowd_of_claim[claim]]);
}

uint32_t Core::find_slot(PoolId pool, std::string_view name) const {
    return parts_->find_name(pool, name);
}

uint32_t Core::find_number(PoolId pool, uint32_t number) const {
    return parts_->find_number(pool, number);
}

std::string_view Core::slot_labels(uint32_t slot) const {
    const shm::SlotRow& row = parts_->state.slots[slot];
    if (!parts_->by_account(row.pool)) return {};
    return parts_->book->labels.text(row.label_set);
}

std::string_view Core::claim_error(ClaimNumber number) const {
    if (!parts_->book) return {};
    const auto known = parts_->book->errors.find(number);
    return known == parts_->book->errors.end() ? std::string_view{} : known->second;
}

}  // namespace dibs::core
