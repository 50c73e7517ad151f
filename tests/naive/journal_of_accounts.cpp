// tests/naive/journal_of_accounts.cpp -- the choices that only pools ordered by account give.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "tests/naive/journal_writer.hpp"

namespace dibs::naive {

namespace {

constexpr const char* kLabels[] = {"os:linux", "gpu:a", "gpu:b", "gpus:a", "zone:1", "zone:2"};

}  // namespace

bool Writer::write_one_of_accounts() {
    if (!character_.accounts) return false;
    if (model().accounts.size() < 2 && dice_.percent(50)) {
        set_account();
        return true;
    }
    const std::vector<uint32_t> pools = pools_of_reports();
    const uint64_t reports = pools.empty() ? 0 : character_.report_weight;
    const uint64_t pulls = character_.pulls ? reports / 3 + 1 : 0;
    switch (dice_.weighed({100,
                           character_.account_weight,
                           character_.account_weight / 3 + 1,
                           reports,
                           pools.empty() ? 0 : pulls,
                           reports / 6,
                           reports / 4})) {
        case 0:
            return false;
        case 1:
            dice_.percent(75) ? set_account() : take_account();
            break;
        case 2:
            reset_balance();
            break;
        case 3:
            report();
            break;
        case 4:
            pull();
            break;
        case 5:
            unassign();
            break;
        default:
            update_claim();
            break;
    }
    return true;
}

std::string Writer::any_account() {
    return std::string(1, static_cast<char>('a' + dice_.below(5)));
}

// Rates of a few slots, in parts of one too, and balances that some microseconds use up.
AccountSpec Writer::account_spec() {
    AccountSpec account;
    const auto classes = dice_.below(shm::kClasses + 1);
    for (uint64_t i = 0; i < classes; ++i) {
        account.rate.push_back(dice_.one_of<int64_t>(
            {0, 0, 1, 333'333, 1'000'000, 1'500'000, 3'000'000, 1'000'000'000'000}));
    }
    const auto balances = dice_.below(shm::kClasses + 1);
    for (uint64_t i = 0; i < balances; ++i) {
        account.balance.push_back(dice_.one_of<int64_t>(
            {0, 0, 1, -1, 7, 40, -40, 100'000, 100'000, 700'000'000, -700'000'000}));
    }
    if (character_.promises) account.balance.assign(1, dice_.one_of<int64_t>({0, 700'000'000}));
    account.charge_max_ns = dice_.one_of<uint64_t>({0, 999, 5000, 100'000, 1'000'000});
    if (character_.fanout && dice_.percent(50)) {
        account.fanout_max = static_cast<uint32_t>(dice_.between(1, 3));
    }
    if (character_.limits && dice_.percent(60)) {
        account.label_limits.emplace_back(dice_.one_of({"gpu", "zone", "os", "*"}), dice_.below(3));
        if (dice_.percent(30)) account.label_limits.emplace_back("zone", dice_.between(1, 2));
    }
    account.free_tasks_disabled = dice_.percent(15);
    account.keep_balance = dice_.percent(30);
    return account;
}

void Writer::set_account() {
    Step step;
    step.kind = StepKind::kSetAccount;
    step.name = any_account();
    step.account = account_spec();
    if (dice_.percent(2)) step.account.balance.assign(6, 1);
    if (dice_.percent(2)) step.account.rate.assign(1, -1);
    if (dice_.percent(1)) step.account.label_limits.emplace_back("", 1);
    put(step);
}

void Writer::take_account() {
    Step step;
    step.kind = StepKind::kDeleteAccount;
    step.name = any_account();
    put(step);
}

void Writer::reset_balance() {
    Step step;
    step.kind = StepKind::kResetBalance;
    step.name = any_account();
    step.account = account_spec();
    if (dice_.percent(2)) step.account.balance.assign(6, 1);
    put(step);
}

std::vector<std::string> Writer::some_labels(uint64_t most) {
    std::vector<std::string> labels;
    if (!character_.labels) return labels;
    for (uint64_t i = dice_.below(most + 1); i > 0; --i)
        labels.emplace_back(kLabels[dice_.below(std::size(kLabels))]);
    if (dice_.percent(1)) labels.emplace_back();
    return labels;
}

void Writer::add_terms(Step& step) {
    Terms& terms = step.terms;
    if (dice_.percent(85)) terms.account = any_account();
    if (dice_.percent(40)) terms.base = some_labels(2);
    if (dice_.percent(30)) terms.provisionable = some_labels(2);
    if (character_.grace && dice_.percent(50)) {
        terms.preempt_mode = shm::PreemptMode::kWithGrace;
        terms.grace_ns = dice_.one_of<uint64_t>({1, 5, 40, 3000, 20'000});
    }
    if (dice_.percent(10)) terms.preempt_mode = shm::PreemptMode::kForbidden;
    terms.requeue = character_.requeue && dice_.percent(50);
    if (character_.reported && dice_.percent(50)) {
        terms.enqueued_ns = event_time();
        terms.event_ns = event_time();
    }
}

// Leases that last some turns: they are what can be promoted, demoted and preempted.
void Writer::take_longer(core::Claim& claim) {
    if (dice_.percent(60)) claim.interval_ns = 0;
    if (claim.timeout_ns < 1000) claim.timeout_ns *= character_.time_unit;
    if (claim.interval_ns < 1000) claim.interval_ns *= character_.time_unit;
}

// Now, or some time ago, or the time that somebody was confirmed at.
uint64_t Writer::event_time() {
    if (dice_.percent(50)) return shm::kNever;
    const TimeNs now = model().now;
    if (!model().slots.empty() && dice_.percent(40)) {
        const Slot& slot = dice_.any(model().slots).second;
        return slot.confirmed_ns - std::min<TimeNs>(slot.confirmed_ns, dice_.below(2));
    }
    return now - std::min<TimeNs>(now, dice_.below(20 * character_.time_unit));
}

std::vector<uint32_t> Writer::pools_of_reports() const {
    std::vector<uint32_t> pools;
    for (uint32_t i = 0; i < journal_.pools.size(); ++i) {
        const core::PoolConfig& pool = journal_.pools[i].config;
        const bool has_row = player_->pool_row(i) != shm::kNoRow;
        if (has_row && pool.kind == shm::PoolKind::kWorker &&
            pool.order == shm::PoolOrder::kAccount) {
            pools.push_back(i);
        }
    }
    return character_.reported ? pools : std::vector<uint32_t>{};
}

// Mostly one that is only reported, else one that is attached: of that one nothing but a claim can
// be reported.
std::string Writer::any_worker(uint32_t pool, uint64_t attached_percent) {
    if (dice_.percent(attached_percent)) {
        std::vector<std::string> attached;
        for (const auto& [id, slot] : model().slots) {
            const bool is_here = slot.pool == player_->pool_row(pool);
            if (is_here && slot.session != shm::kNoRow && !slot.name.empty()) {
                attached.push_back(slot.name);
            }
        }
        if (!attached.empty()) return dice_.any(attached);
    }
    return "reported" + std::to_string(dice_.below(6));
}

std::vector<std::string> Writer::labels_of_worker(uint32_t pool, const std::string& name) {
    for (const auto& [id, slot] : model().slots) {
        if (slot.pool == pool && slot.name == name && dice_.percent(80)) {
            return {slot.labels.begin(), slot.labels.end()};
        }
    }
    std::vector<std::string> labels = some_labels(4);
    if (dice_.percent(70)) labels.emplace_back("gpu");
    return labels;
}

// Mostly the claim that this worker is thought to run.
uint32_t Writer::claim_on(const std::string& worker, uint32_t pool) {
    for (const auto& [id, slot] : model().slots) {
        const bool is_it = slot.pool == player_->pool_row(pool) && slot.name == worker;
        if (is_it && slot.is == SlotIs::kLeased && dice_.percent(75)) {
            return label_of_number_[slot.claim];
        }
    }
    if (!model().claims.empty() && dice_.percent(30)) {
        return label_of_number_[dice_.any(model().claims).first];
    }
    return any_lease_label();
}

void Writer::report() {
    std::vector<uint32_t> pools = pools_of_reports();
    Step step;
    step.kind = StepKind::kReport;
    step.pool = dice_.percent(98) ? dice_.any(pools) : any_pool(false);
    step.name = any_worker(step.pool, 30);
    step.report = dice_.one_of({core::Report::Kind::kIdle,
                                core::Report::Kind::kIdle,
                                core::Report::Kind::kRunning,
                                core::Report::Kind::kRunning,
                                core::Report::Kind::kAbsent});
    step.terms.event_ns = event_time();
    if (step.report == core::Report::Kind::kIdle) {
        step.labels = labels_of_worker(step.pool, step.name);
    } else {
        step.subject = claim_on(step.name, step.pool);
    }
    put(step);
}

void Writer::pull() {
    std::vector<uint32_t> pools = pools_of_reports();
    Step step;
    step.kind = StepKind::kPull;
    step.pool = dice_.percent(98) ? dice_.any(pools) : any_pool(false);
    for (uint64_t i = dice_.between(0, 3); i > 0; --i) {
        const std::string name = any_worker(step.pool, 4);
        step.callers.push_back({name, labels_of_worker(step.pool, name)});
    }
    if (dice_.percent(40)) step.terms.event_ns = event_time();
    put(step);
}

void Writer::unassign() {
    std::vector<uint32_t> pools = pools_of_reports();
    Step step;
    step.kind = StepKind::kUnassign;
    step.pool = dice_.any(pools);
    step.name = any_worker(step.pool, 30);
    step.subject = claim_on(step.name, step.pool);
    step.terms.event_ns = event_time();
    step.on = dice_.percent(40);
    put(step);
}

void Writer::update_claim() {
    std::vector<uint32_t> pools = pools_of_reports();
    Step step;
    step.kind = StepKind::kUpdateClaim;
    const uint32_t pool = dice_.any(pools);
    step.subject = claim_on(any_worker(pool, 30), pool);
    step.terms.event_ns = event_time();
    step.terms.account_given = dice_.percent(40);
    if (step.terms.account_given) step.terms.account = any_account();
    step.terms.base_given = dice_.percent(40);
    if (step.terms.base_given) step.terms.base = some_labels(2);
    step.terms.provisionable_given = dice_.percent(30);
    if (step.terms.provisionable_given) step.terms.provisionable = some_labels(2);
    put(step);
}

}  // namespace dibs::naive
