// tests/sim/auditor.cpp -- money, limits and doubts.
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

// --- doubts

void Auditor::doubt_lease(uint32_t row, bool strict_too) {
    const shm::LeaseRow& lease = core_->lease(row);
    if (lease.state == shm::LeaseState::kFree) return;
    if (lease.mode == shm::ExpiryMode::kStrict && !strict_too) return;
    ledger_.doubt(lease.pool, lease.fence);
}

// What a report may end, it may end only where it is not older than what is known.
uint64_t Auditor::time_of(uint64_t event_ns) const {
    return event_ns == shm::kNever ? core_->now() : event_ns;
}

// The lease that the claim runs under, or kNoRow.
uint32_t Auditor::lease_of(uint64_t number) const {
    const uint32_t row = core_->find_claim(number);
    const bool runs = row != kNoRow && core_->claim(row).state == shm::ClaimState::kRunning;
    return runs ? core_->claim(row).lease : kNoRow;
}

bool Auditor::is_on(uint32_t lease, uint32_t slot) const {
    return slot != kNoRow && core_->slot(slot).state == shm::SlotState::kLeased &&
           core_->slot(slot).holder == lease;
}

void Auditor::doubt_claim(uint64_t number) {
    if (const uint32_t lease = lease_of(number); lease != kNoRow) doubt_lease(lease, false);
}

void Auditor::doubt_slot(uint32_t row, bool strict_too) {
    const shm::SlotRow& slot = core_->slot(row);
    if (slot.state == shm::SlotState::kLeased) doubt_lease(slot.holder, strict_too);
}

// As of that time, if nobody has confirmed it since, nor its claim.
void Auditor::doubt_worker(uint32_t row, uint64_t at_ns) {
    if (row == kNoRow || core_->slot(row).confirmed_ns > at_ns) return;
    if (core_->slot(row).state != shm::SlotState::kLeased) return;
    const uint32_t claim = core_->find_claim(core_->lease(core_->slot(row).holder).arrival);
    if (claim != kNoRow && core_->claim(claim).confirmed_ns > at_ns) return;
    doubt_slot(row, false);
}

void Auditor::hear_of_death(uint32_t session) {
    for (uint32_t row = 0; row < core_->slots_max(); ++row) {
        if (core_->slot(row).session == session) doubt_slot(row, true);
    }
}

void Auditor::hear(const core::WorkerWord& word) {
    const auto row = static_cast<uint32_t>(word.slot);
    if (row < core_->slots_max()) doubt_slot(row, true);
}

void Auditor::hear(const core::Steer& steer) {
    // One that is renewed may end earlier than it would have.
    const auto row = static_cast<uint32_t>(steer.lease);
    const bool of_lease = steer.kind != core::Steer::Kind::kCancel;
    if (of_lease && row < core_->leases_max()) doubt_lease(row, true);
    administered_();
}

// S2.23 to S2.25.
void Auditor::hear(const core::Report& report) {
    const uint64_t at_ns = time_of(report.event_ns);
    const uint32_t worker = core_->find_slot(report.pool, report.worker);
    const uint32_t claim = core_->find_claim(report.claim);
    const bool is_older = claim != kNoRow && core_->claim(claim).confirmed_ns > at_ns;
    switch (report.kind) {
        case core::Report::Kind::kIdle:
            doubt_if_reported(worker, at_ns);
            break;
        case core::Report::Kind::kRunning:
            if (is_older || is_on(lease_of(report.claim), worker)) break;
            doubt_claim(report.claim);
            doubt_worker(worker, at_ns);
            break;
        case core::Report::Kind::kAbsent:
            if (!is_older) doubt_claim(report.claim);
            break;
    }
    administered_();
}

void Auditor::doubt_if_reported(uint32_t slot, uint64_t at_ns) {
    if (slot != kNoRow && core_->slot(slot).session == kNoRow) doubt_worker(slot, at_ns);
}

// S2.30: what has not been confirmed for too long goes; whoever asks is idle, but for what it has
// been told and not confirmed.
void Auditor::hear(const core::Pull& pull) {
    const uint64_t at_ns = time_of(pull.event_ns);
    const bool is_there = pull.pool < core_->pools();
    const uint64_t limit_ns = is_there ? core_->pool(pull.pool).queue_timeout_ns : 0;
    const auto is_unconfirmed = [&](uint32_t row) {
        return (core_->slot(row).flags & shm::SlotFlag::kAssigned) != 0;
    };
    for (uint32_t row = 0; is_there && row < core_->slots_max(); ++row) {
        const shm::SlotRow& slot = core_->slot(row);
        if (slot.pool != pull.pool || slot.state != shm::SlotState::kLeased) continue;
        const uint64_t since_ns = core_->lease(slot.holder).granted_ns;
        if (is_unconfirmed(row) && at_ns >= since_ns && at_ns - since_ns >= limit_ns) {
            doubt_slot(row, false);
        }
    }
    for (const core::Pull::Worker& worker : pull.workers) {
        const uint32_t row = core_->find_slot(pull.pool, worker.name);
        if (row != kNoRow && !is_unconfirmed(row)) doubt_if_reported(row, at_ns);
    }
    administered_();
}

// S2.27
void Auditor::hear(const core::Unassign& unassign) {
    const uint32_t lease = lease_of(unassign.claim);
    if (is_on(lease, core_->find_slot(unassign.pool, unassign.worker))) {
        doubt_claim(unassign.claim);
    }
    administered_();
}

// S2.26
void Auditor::hear(const core::UpdateClaim& update) {
    const uint32_t claim = core_->find_claim(update.claim);
    if (claim != kNoRow && core_->claim(claim).confirmed_ns <= time_of(update.event_ns)) {
        doubt_claim(update.claim);
    }
    administered_();
}

void Auditor::hear(const core::PoolConfig&) {
    administered_();
}

// --- money

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

void Auditor::hear(const core::AccountConfig& account) {
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

void Auditor::hear_of_deleted(std::string_view account) {
    step(core_->now());
    std::erase_if(book_.purses, [&](const auto& purse) { return purse.second.name == account; });
    administered_();
}

void Auditor::hear_of_reset(std::string_view account, std::span<const int64_t> balance) {
    step(core_->now());
    if (Purse* purse = purse_of(account); purse != nullptr) {
        for (size_t p = 0; p < shm::kClasses; ++p)
            purse->balance[p] = p < balance.size() ? balance[p] : 0;
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
        const std::span<const int64_t> cost = core_->decided_cost(decision);
        if (!refund) {  // beside what it has taken over before, for a slot that did not come
            Money& taken_over = book_.taken_over[decision.claim];
            for (size_t p = 0; p < shm::kClasses; ++p)
                taken_over[p] += cost[p];
        }
        if (refund && decision.is_void) continue;
        const auto found = book_.purses.find(decision.round);
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

// --- limits

// For whom its account's limits count it: it runs, confirms, or is promised a slot.
bool Auditor::counts(uint32_t row) const {
    const shm::ClaimRow& claim = core_->claim(row);
    switch (claim.state) {
        case shm::ClaimState::kReserved:
        case shm::ClaimState::kPromised:
            return true;
        case shm::ClaimState::kRunning:
            return (core_->lease(claim.lease).flags & shm::LeaseFlag::kTaken) == 0;
        default:
            return false;
    }
}

// Each ended by a zero byte, as they stand in STATE.
std::string Auditor::labels_in(uint32_t set) const {
    if (set == kNoRow) return {};
    const shm::StateHead& head = core_->head();
    const shm::TablePlace& place = head.table[static_cast<size_t>(shm::Table::kLabelSets)];
    const auto* rows = reinterpret_cast<const shm::LabelSetRow*>(
        reinterpret_cast<const std::byte*>(&head) + place.offset);
    std::string text(rows[set].text_size, '\0');
    core_->copy_chain(
        rows[set].text, rows[set].text_size, reinterpret_cast<std::byte*>(text.data()));
    return text;
}

// Those that it must have and those that it prefers, each once, in their order.
std::string Auditor::labels_of(const shm::ClaimRow& claim) const {
    std::set<std::string> labels;
    for (const uint32_t set : {claim.label_set, claim.preferred_set}) {
        const std::string text = labels_in(set);
        for (size_t at = 0; at < text.size(); at = text.find('\0', at) + 1)
            labels.insert(text.c_str() + at);
    }
    std::string all;
    for (const std::string& label : labels)
        all += label + '\0';
    return all;
}

// Claims whose labels are the same hold no more than fanout_max, but for what they held before
// that.
void Auditor::count_crowds() {
    std::map<Crowd, Held> crowds;
    std::map<Crowd, uint32_t> limits;
    promised_.clear();
    for (uint32_t row = 0; row < core_->claims_max(); ++row) {
        const shm::ClaimRow& claim = core_->claim(row);
        if (claim.state == shm::ClaimState::kFree || claim.account == kNoRow) continue;
        if (core_->pool(claim.pool).order != shm::PoolOrder::kAccount || !counts(row)) continue;
        if (claim.state == shm::ClaimState::kPromised) promised_[claim.first_slot] = row;
        if (claim.account_class >= shm::kClasses) continue;
        const Crowd crowd{name_of(claim.account), claim.pool, labels_of(claim)};
        crowds[crowd].units += claim.units;
        crowds[crowd].claims.insert(claim.arrival);
        crowds[crowd].sets.insert({claim.label_set, claim.preferred_set});
        limits[crowd] = is_configured(claim.account) ? core_->account(claim.account).fanout_max : 0;
    }
    for (const auto& [crowd, held] : crowds) {
        if (limits[crowd] != 0 && held.sets.size() > 1) ++seen_["a fan-out of several sets"];
        if (limits[crowd] == 0 || held.units <= limits[crowd]) continue;
        ++seen_["above a limit of later"];
        const std::set<uint64_t>& before = crowds_[crowd].claims;
        expect(std::includes(before.begin(), before.end(), held.claims.begin(), held.claims.end()),
               "account " + std::get<0>(crowd) + " holds " + std::to_string(held.units) +
                   " slots in pool " + std::to_string(std::get<1>(crowd)) + ", some of them anew");
    }
    crowds_ = std::move(crowds);
}

// The claim that the slot counts for, or kNoRow.
uint32_t Auditor::claim_on(uint32_t row) const {
    if (const auto promised = promised_.find(row); promised != promised_.end()) {
        return promised->second;
    }
    const shm::SlotRow& slot = core_->slot(row);
    if (slot.state == shm::SlotState::kReserved) {
        return (slot.flags & shm::SlotFlag::kKept) != 0 ? kNoRow : slot.holder;
    }
    if (slot.state != shm::SlotState::kLeased) return kNoRow;
    const uint32_t claim = core_->find_claim(core_->lease(slot.holder).arrival);
    return claim != kNoRow && counts(claim) ? claim : kNoRow;
}

void Auditor::count_labels() {
    std::map<Label, std::set<Place>> labels;
    std::map<uint32_t, std::vector<std::pair<std::string, uint32_t>>> limits;  // by account
    std::map<Label, uint32_t> limit_of;
    for (uint32_t row = 0; row < core_->slots_max(); ++row) {
        const shm::SlotRow& slot = core_->slot(row);
        if (slot.state == shm::SlotState::kFree || slot.label_set == kNoRow) continue;
        if (core_->pool(slot.pool).order != shm::PoolOrder::kAccount) continue;
        const uint32_t claim = claim_on(row);
        if (claim == kNoRow || core_->claim(claim).account == kNoRow) continue;
        const uint32_t account = core_->claim(claim).account;
        if (!limits.contains(account)) {
            if (is_configured(account)) {
                limits[account] = core_->label_limits(account);
            } else {
                limits[account].clear();
            }
        }
        std::string_view rest = core_->slot_labels(row);
        while (!rest.empty()) {
            const std::string label(rest.substr(0, rest.find('\0')));
            rest.remove_prefix(std::min(rest.size(), label.size() + 1));
            const Label place{name_of(account), slot.pool, label};
            labels[place].insert({core_->claim(claim).arrival, slot.number});
            for (const auto& [key, limit] : limits[account]) {
                if (label.starts_with(key + ":")) limit_of[place] = limit;
            }
        }
    }
    for (const auto& [label, places] : labels) {
        const auto limit = limit_of.find(label);
        if (limit == limit_of.end() || places.size() <= limit->second) continue;
        ++seen_["above a limit of later"];
        const std::set<Place>& before = labels_[label];
        expect(std::includes(before.begin(), before.end(), places.begin(), places.end()),
               "account " + std::get<0>(label) + " holds " + std::to_string(places.size()) +
                   " slots with label " + std::get<2>(label) + ", some of them anew");
    }
    labels_ = std::move(labels);
}

}  // namespace dibs::sim
