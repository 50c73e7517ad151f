// tests/sim/auditor.cpp -- money, and what has been committed.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/auditor.hpp"

#include <algorithm>
#include <vector>

namespace dibs::sim {

namespace {

using core::DecisionKind;
using shm::kNoRow;

constexpr int64_t kMicrosASecond = 1'000'000;
constexpr int64_t kBalanceMost = 1'000'000'000'000'000'000;

int64_t micros(uint64_t ns) {
    return static_cast<int64_t>(ns / 1000);
}

}  // namespace

void Auditor::expect(bool holds, const std::string& what) {
    if (!holds) ledger_.wrong("auditor: " + what);
}

bool Auditor::is_configured(uint32_t row) const {
    const shm::AccountRow& account = core_->account(row);
    return account.state != 0 && (account.flags & shm::AccountFlag::kConfigured) != 0;
}

std::string Auditor::name_of(uint32_t account) const {
    const shm::AccountRow& row = core_->account(account);
    return {row.name, row.name_size};
}

Auditor::Purse* Auditor::purse_of(std::string_view name) {
    for (auto& [row, purse] : book_.purses) {
        if (purse.name == name) return &purse;
    }
    return nullptr;
}

Auditor::Purse Auditor::purse_at(uint32_t row) const {
    const shm::AccountRow& account = core_->account(row);
    Purse purse{.name = name_of(row),
                .balance = core_->balance(row),
                .charge_max_ns = account.charge_max_ns};
    std::copy(std::begin(account.rate), std::end(account.rate), purse.rate.begin());
    return purse;
}

std::map<uint64_t, Auditor::Run> Auditor::runs_now() const {
    std::map<uint64_t, Run> runs;
    for (uint32_t row = 0; row < core_->leases_max(); ++row) {
        const shm::LeaseRow& lease = core_->lease(row);
        if (lease.state == shm::LeaseState::kFree) continue;
        if (core_->pool(lease.pool).order != shm::PoolOrder::kAccount) continue;
        runs[core::row_id(lease.head.generation, row)] = {lease.account_class, core_->cost(row)};
    }
    return runs;
}

// S2.3 and S2.4, as they are written.
void Auditor::step(uint64_t now_ns) {
    const int64_t before = micros(book_.now_ns);
    const int64_t now = micros(now_ns);
    expect(now_ns >= book_.now_ns, "time goes back");
    for (auto& [row, purse] : book_.purses) {
        for (size_t p = 0; p < shm::kClasses; ++p) {
            const int64_t rate = purse.rate[p];
            int64_t value = purse.balance[p] - (now - before) * purse.running[p];
            const int64_t cap = rate * micros(purse.charge_max_ns) / kMicrosASecond;
            if (value < cap) {
                value += rate * now / kMicrosASecond - rate * before / kMicrosASecond;
                value = std::min(value, cap);
            }
            purse.balance[p] = std::clamp(value, -kBalanceMost, kBalanceMost);
        }
    }
    for (auto& [id, run] : book_.runs) {
        if (run.at_class < shm::kClasses) run.cost[run.at_class] += now - before;
    }
    book_.now_ns = now_ns;
}

void Auditor::heard(const core::AccountConfig& account) {
    step(core_->now());
    Purse* known = purse_of(account.name);
    const bool keeps = known != nullptr && account.keep_balance;
    Purse& purse = known != nullptr ? *known : book_.purses[core_->find_account(account.name)];
    purse.name = account.name;
    purse.charge_max_ns = account.charge_max_ns;
    for (size_t p = 0; p < shm::kClasses; ++p) {
        purse.rate[p] = p < account.rate.size() ? account.rate[p] : 0;
        if (!keeps) purse.balance[p] = p < account.balance.size() ? account.balance[p] : 0;
    }
    administered_();
}

void Auditor::heard(const core::DeleteAccount& deleted) {
    step(core_->now());
    std::erase_if(book_.purses,
                  [&](const auto& purse) { return purse.second.name == deleted.account; });
    administered_();
}

void Auditor::heard(const core::ResetBalance& reset) {
    step(core_->now());
    if (Purse* purse = purse_of(reset.account); purse != nullptr) {
        for (size_t p = 0; p < shm::kClasses; ++p)
            purse->balance[p] = p < reset.balance.size() ? reset.balance[p] : 0;
    }
    administered_();
}

void Auditor::note(const core::Decision& decision) {
    switch (decision.kind) {
        case DecisionKind::kPromote:
            ++seen_["promoted"];
            return;
        case DecisionKind::kDemote:
            ++seen_[decision.to_class < shm::kClasses ? "demoted" : "demoted to the free class"];
            return;
        case DecisionKind::kPreempt:
            ++seen_["preempted"];
            return;
        case DecisionKind::kRefund:
            if (decision.is_void) ++seen_["refund void"];
            return;
        case DecisionKind::kSlotGone: {
            const auto row = static_cast<uint32_t>(decision.id);
            if (core_->slot(row).session == kNoRow) ++seen_["reported worker gone"];
            return;
        }
        case DecisionKind::kLeaseEnd:
            if (decision.value == 1) ++seen_["waits again"];
            return;
        default:
            return;
    }
}

// What was moved from purse to purse, and what a run begins with.
void Auditor::take_decisions() {
    for (const core::Decision& decision : core_->decisions()) {
        note(decision);
        const bool refund = decision.kind == DecisionKind::kRefund;
        if (!refund && decision.kind != DecisionKind::kPreempt) continue;
        const std::span<const int64_t> cost = core_->decided_amounts(decision);
        if (!refund) {  // beside what it has taken over before, for a slot that did not come
            Money& taken_over = book_.taken_over[decision.claim];
            for (size_t p = 0; p < shm::kClasses; ++p)
                taken_over[p] += cost[p];
        }
        if (refund && decision.is_void) continue;
        const auto found = book_.purses.find(decision.account);
        expect(found != book_.purses.end(), "an account that is not configured pays or is paid");
        if (found == book_.purses.end()) continue;
        for (size_t p = 0; p < shm::kClasses; ++p) {
            int64_t& value = found->second.balance[p];
            value += refund ? cost[p] : -cost[p];
            value = std::clamp(value, -kBalanceMost, kBalanceMost);
        }
    }
}

void Auditor::compare(const Book& book, const std::string& when) {
    const auto said = [](const Money& money) {
        std::string out;
        for (const int64_t value : money)
            out += ' ' + std::to_string(value);
        return out;
    };
    size_t configured = 0;
    for (uint32_t row = 0; row < core_->accounts_max(); ++row) {
        if (!is_configured(row)) continue;
        ++configured;
        const auto found = book.purses.find(row);
        const std::string who = when + "account " + name_of(row);
        if (found == book.purses.end()) {
            expect(false, who + " is there, and nobody has made it");
            continue;
        }
        const Money balance = core_->balance(row);
        expect(balance == found->second.balance,
               who + " has" + said(balance) + ", and" + said(found->second.balance) + " is right");
        expect(name_of(row) == found->second.name, who + " has another name");
    }
    expect(configured == book.purses.size(), when + "an account has gone");
    for (const auto& [id, run] : runs_now()) {
        Money right = {};
        if (const auto known = book.runs.find(id); known != book.runs.end()) {
            right = known->second.cost;
        } else {
            const uint64_t number = core_->lease(static_cast<uint32_t>(id)).arrival;
            const auto carried = book.taken_over.find(number);
            if (carried != book.taken_over.end()) right = carried->second;
        }
        expect(run.cost == right,
               when + "the run of claim " +
                   std::to_string(core_->lease(static_cast<uint32_t>(id)).arrival) + " has cost" +
                   said(run.cost) + ", and" + said(right) + " is right");
    }
}

// What the core has by now.
void Auditor::load() {
    book_.turns = core_->counters().turns;
    book_.now_ns = core_->now();
    book_.purses.clear();
    for (uint32_t row = 0; row < core_->accounts_max(); ++row) {
        if (is_configured(row)) book_.purses[row] = purse_at(row);
    }
    count_running();
    std::map<uint64_t, Run> runs = runs_now();
    for (const auto& [id, run] : runs) {
        if (!book_.runs.contains(id)) {
            book_.taken_over.erase(core_->lease(static_cast<uint32_t>(id)).arrival);
        }
    }
    book_.runs = std::move(runs);
}

// Who pays from now on, by the leases.
void Auditor::count_running() {
    for (uint32_t row = 0; row < core_->leases_max(); ++row) {
        const shm::LeaseRow& lease = core_->lease(row);
        if (lease.state == shm::LeaseState::kFree || lease.account == kNoRow) continue;
        if (core_->pool(lease.pool).order != shm::PoolOrder::kAccount) continue;
        const bool pays = (lease.flags & shm::LeaseFlag::kTaken) == 0;
        const auto purse = book_.purses.find(lease.account);
        if (!pays || lease.account_class >= shm::kClasses || purse == book_.purses.end()) continue;
        purse->second.running[lease.account_class] += lease.units;
    }
}

// Its turn was committed, and nobody has heard of it: what it has moved is not known.
void Auditor::take_over() {
    book_.runs.clear();
    book_.taken_over.clear();
    for (uint32_t row = 0; row < core_->claims_max(); ++row) {
        const shm::ClaimRow& claim = core_->claim(row);
        const bool waits = claim.state == shm::ClaimState::kWaiting ||
                           claim.state == shm::ClaimState::kReserved ||
                           claim.state == shm::ClaimState::kPromised;
        if (!waits || claim.carried_cost == kNoRow) continue;
        if (core_->pool(claim.pool).order != shm::PoolOrder::kAccount) continue;
        Money& cost = book_.taken_over[claim.arrival];
        core_->copy_chain(
            claim.carried_cost, sizeof(cost), reinterpret_cast<std::byte*>(cost.data()));
    }
}

void Auditor::attach(core::Core& core) {
    core_ = &core;
    core.set_tap(this);
    if (begun_ && core.counters().turns == written_.turns) {
        ++seen_["takeovers audited"];
        expect(core.now() == written_.now_ns, "after a death: another time");
        compare(written_, "after a death: ");
        book_ = written_;
    } else {
        take_over();
    }
    begun_ = true;
    load();
    written_ = book_;
    count_crowds();
    count_labels();
}

void Auditor::hear_of_commit() {
    ++turns_;
    ++seen_["turns audited"];
    step(core_->now());
    take_decisions();
    compare(book_, "");
    load();
    if (book_.turns != written_.turns) written_ = book_;
    count_crowds();
    count_labels();
    if (turns_ % check_every_ != 0) return;
    for (const std::string& wrong : core_->check_all())
        ledger_.wrong("behind a turn: " + wrong);
}

}  // namespace dibs::sim
