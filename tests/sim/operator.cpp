// tests/sim/operator.cpp -- reports, pulls, accounts, steering.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/operator.hpp"

#include <algorithm>

namespace dibs::sim {

using admin::Ask;
using admin::Code;
using admin::ReportKind;

namespace {

constexpr uint64_t kReportedWorkers = 7;
const char* const kOddNames[] = {
    "", "a name that is longer than the sixty-three bytes that it may have"};

std::vector<std::string> labels_of(uint64_t draw) {
    std::vector<std::string> labels;
    if ((draw & 1U) != 0) labels.emplace_back("size:big");
    if ((draw & 2U) != 0) labels.emplace_back("gpu:a");
    if (draw == 7) labels.emplace_back("");
    return labels;
}

std::string uid_account(uint64_t place) {
    return "uid:" + std::to_string(kFirstUid + place);
}

}  // namespace

// False: there is no answer, and what was asked for may have happened or not.
bool Operator::ask(AdminJob& job, const char* what) {
    doing(what);
    const bool strange = !scene_.calm && dice().one_in(24);
    job.is_admin = !strange;
    job.uid = strange ? uid() : 0;
    const Ask asked = job.request.ask;
    if (!scene_.house.administer(job)) {
        ++scene_.seen["asked in vain"];
        scene_.world.pass(1'000'000);
        return false;
    }
    ++scene_.commands;
    scene_.ledger.told(static_cast<uint64_t>(asked) << 8U | static_cast<uint64_t>(job.answer.code));
    const bool steers = asked == Ask::report || asked == Ask::pull || asked == Ask::set_account ||
                        asked == Ask::reset_account || asked == Ask::delete_account;
    expect(!strange || !steers || job.answer.code == Code::denied,
           std::string(what) + ": a stranger may");
    expect(strange || job.answer.code != Code::denied, std::string(what) + " is denied");
    ++scene_.seen[std::string(what) + (job.answer.code == Code::ok ? "" : ", refused")];
    return !strange;
}

uint32_t Operator::reported_pool() const {
    for (uint32_t pool = 0; pool < scene_.pools.size(); ++pool) {
        if (scene_.pools[pool].by_account && scene_.pools[pool].has_workers) return pool;
    }
    return shm::kNoRow;
}

std::string Operator::worker() {
    if (dice().one_in(200)) return kOddNames[dice().below(2)];
    return "w" + std::to_string(dice().below(kReportedWorkers));
}

// A claim that somebody has heard of, or any.
uint64_t Operator::number() {
    if (!leases_.empty() && dice().one_in(2)) return leases_.back().number;
    if (!claims_.empty() && dice().one_in(3)) return claims_.back().number;
    if (!assigned_.empty() && dice().one_in(2)) return assigned_.begin()->second;
    if (scene_.numbers.empty() || dice().one_in(12)) return dice().below(2000);
    return scene_.numbers[dice().below(scene_.numbers.size())];
}

void Operator::age(AdminJob& job) {
    if (dice().one_in(3)) job.request.age_ns = dice().below(30'000'000);
    if (dice().one_in(200)) job.request.age_ns = kForever;
}

// --- workers

void Operator::pull() {
    AdminJob job;
    job.request.ask = Ask::pull;
    job.request.pool = scene_.pools[reported_pool()].name;
    const uint64_t first = dice().below(kReportedWorkers);
    const uint64_t count = dice().one_in(30) ? dice().below(40) : 1 + dice().below(3);
    for (uint64_t i = 0; i < count; ++i) {
        auto puller = std::make_unique<admin::PullerT>();
        puller->worker = "w" + std::to_string((first + i) % std::max(kReportedWorkers, count));
        puller->labels = labels_of(dice().below(dice().one_in(40) ? 8 : 4));
        job.request.pullers.push_back(std::move(puller));
    }
    age(job);
    std::vector<std::string> asked;
    for (const auto& puller : job.request.pullers)
        asked.push_back(puller->worker);
    if (!ask(job, "pull")) return;
    if (job.answer.code != Code::ok) {
        expect(job.answer.code == Code::refused, "a pull is answered strangely");
        return;
    }
    // Between it and the turn's end nobody but another administrator can have sent one away.
    std::vector<std::string> told;
    for (const auto& pulled : job.answer.pulled)
        told.push_back(pulled->worker);
    if (scene_.operators == 1) {
        expect(told == asked, "not all of those who have asked for work are answered");
    } else {
        size_t found = 0;
        for (const std::string& worker : asked)
            found += found < told.size() && told[found] == worker ? 1 : 0;
        expect(found == told.size(), "others than those who have asked for work are answered");
        if (told.size() < asked.size()) ++scene_.seen["asked and sent away"];
    }
    take_pulled(job);
}

void Operator::take_pulled(const AdminJob& job) {
    for (const auto& pulled : job.answer.pulled) {
        scene_.ledger.told(pulled->claim);
        assigned_.erase(pulled->worker);
        if (pulled->abort != 0) ++scene_.seen["to abort"];
        if (pulled->claim == 0) continue;
        ++scene_.seen["pulled"];
        if (!pulled->provision.empty()) ++scene_.seen["to provision"];
        assigned_[pulled->worker] = pulled->claim;
        scene_.know(pulled->claim);
    }
}

// As a worker that does as it is told.
void Operator::say_what_is_so() {
    if (assigned_.empty()) return pull();
    auto which = assigned_.begin();
    std::advance(which, static_cast<ptrdiff_t>(dice().below(assigned_.size())));
    AdminJob job;
    job.request.ask = Ask::report;
    job.request.pool = scene_.pools[reported_pool()].name;
    job.request.worker = which->first;
    if (dice().one_in(2)) {
        job.request.report = ReportKind::running;
        job.request.number = which->second;
    } else {
        job.request.report = ReportKind::idle;
        job.request.labels = labels_of(dice().below(4));
        assigned_.erase(which);
    }
    (void)ask(job, "report what is so");
}

void Operator::report() {
    static constexpr struct {
        ReportKind kind;
        const char* what;
    } kKinds[] = {{ReportKind::idle, "report idle"},
                  {ReportKind::running, "report running"},
                  {ReportKind::absent, "report absent"},
                  {ReportKind::unassign, "unassign"},
                  {ReportKind::again, "announce again"}};
    const auto& [kind, what] = kKinds[dice().below(std::size(kKinds))];
    AdminJob job;
    job.request.ask = Ask::report;
    job.request.report = kind;
    job.request.pool = scene_.pools[reported_pool()].name;
    // Where claims run that are not in the pool of the reports.
    if (kind == ReportKind::again && dice().one_in(2)) {
        job.request.pool = scene_.pools[dice().below(scene_.pools.size())].name;
    }
    if (kind == ReportKind::absent || kind == ReportKind::again) {
        job.request.number = number();
    } else {
        job.request.worker = worker();
    }
    if (kind == ReportKind::running) job.request.number = number();
    if (kind == ReportKind::unassign) {
        job.request.number = number();
        if (!assigned_.empty() && !dice().one_in(4)) {
            job.request.worker = assigned_.begin()->first;
            job.request.number = assigned_.begin()->second;
        }
        if (dice().one_in(3)) job.request.error = "out of memory";
    }
    if (kind == ReportKind::idle) job.request.labels = labels_of(dice().below(4));
    if (kind == ReportKind::again) {
        job.request.labels_given = dice().one_in(3);
        if (job.request.labels_given) job.request.labels = labels_of(dice().below(2));
        job.request.prefer_given = dice().one_in(3);
        if (job.request.prefer_given) job.request.prefer = labels_of(2 * dice().below(2));
        if (dice().one_in(4)) job.request.account = drawn_account().name;
    }
    age(job);
    if (!ask(job, what)) return;
    expect(job.answer.code == Code::ok || job.answer.code == Code::not_found ||
               job.answer.code == Code::refused,
           std::string(what) + " is answered strangely");
}

// --- accounts

AccountSettings Operator::drawn_account() {
    AccountSettings account;
    account.name = uid_account(dice().below(kUids));
    if (dice().one_in(8)) account.name = "guests";
    for (uint64_t p = dice().below(6); p > 0; --p)
        account.rate.push_back(static_cast<int64_t>(dice().below(9)) * kMicros / 2);
    account.charge_max_ns = dice().below(300) * 1'000'000;
    account.free_tasks_disabled = dice().one_in(8);
    if (dice().one_in(3)) account.fanout_max = static_cast<uint32_t>(dice().below(4));
    if (dice().one_in(3)) {
        account.label_limits = {{"size", static_cast<uint32_t>(dice().below(3))}};
        if (dice().one_in(3)) account.label_limits.emplace_back("gpu", 1);
    }
    for (uint64_t p = dice().below(6); p > 0; --p)
        account.balance.push_back((static_cast<int64_t>(dice().below(140)) - 60) * kMicros / 1000);
    return account;
}

bool Operator::set_account(const AccountSettings& settings, bool balance_given) {
    AdminJob job;
    job.request.ask = Ask::set_account;
    job.request.account = settings.name;
    job.request.change = std::make_unique<admin::AccountChangeT>();
    admin::AccountChangeT& change = *job.request.change;
    const bool all = scene_.calm;
    const auto given = [&] { return all || !dice().one_in(3); };
    if (given()) {
        change.rate = settings.rate;
        change.rate_given = true;
    }
    change.balance_given = balance_given;
    if (balance_given) change.balance = settings.balance;
    if (given()) change.charge_max_ns = settings.charge_max_ns;
    if (given()) change.fanout_max = settings.fanout_max;
    if (given()) change.free_tasks_disabled = settings.free_tasks_disabled;
    for (const char* key : {"size", "gpu"}) {
        if (!given()) continue;
        change.label_keys.emplace_back(key);
        change.label_limits.push_back(shm::kNoRow);
        for (const auto& [limited, limit] : settings.label_limits) {
            if (limited == key) change.label_limits.back() = limit;
        }
    }
    if (!scene_.calm && dice().one_in(40)) change.rate.push_back(-1);
    if (!ask(job, "set an account")) return false;
    expect(job.answer.code == Code::ok || job.answer.code == Code::refused,
           "a change of an account is answered strangely");
    if (job.answer.code != Code::ok) return false;
    expect(job.answer.accounts.size() == 1 && job.answer.accounts[0]->configured &&
               job.answer.accounts[0]->name == settings.name,
           "an account is not what it was made");
    return true;
}

void Operator::change_account() {
    const AccountSettings drawn = drawn_account();
    const uint64_t draw = dice().below(8);
    if (draw < 4) {
        (void)set_account(drawn, dice().one_in(2));
        return;
    }
    if (draw == 4) {
        // Another file: some accounts less, others with other rates, pools with other terms.
        Config config = scene_.config;
        std::erase_if(config.accounts, [&](const auto&) { return dice().one_in(4); });
        for (AccountSettings& account : config.accounts) {
            if (dice().one_in(2)) continue;
            const std::string name = account.name;
            account = drawn_account();
            account.name = name;
        }
        for (PoolSettings& pool : config.pools) {
            if (pool.values.quantum_ns != 0 && dice().one_in(3)) {
                pool.values.quantum_ns = dice().below(2) * 50'000;
                pool.values.park = pool.values.park && pool.values.quantum_ns != 0;
            }
            if (pool.values.order != shm::PoolOrder::kAccount) continue;
            pool.values.preemption_disabled = dice().one_in(4);
            pool.values.promote_threshold = static_cast<int64_t>(dice().below(20)) * 1000;
            pool.values.demote_threshold = -static_cast<int64_t>(dice().below(20)) * 1000;
            pool.values.account_expiry_ns = (1 + dice().below(60)) * 1'000'000;
            pool.values.queue_timeout_ns = (1 + dice().below(30)) * 1'000'000;
            pool.values.request_age_max_ns = (1 + dice().below(200)) * 1'000'000;
        }
        return reload(config);
    }
    AdminJob job;
    job.request.account = drawn.name;
    job.request.ask = draw < 7 ? Ask::reset_account : Ask::delete_account;
    if (draw < 7) {
        job.request.change = std::make_unique<admin::AccountChangeT>();
        job.request.change->balance = drawn.balance;
    }
    if (!ask(job, draw < 7 ? "reset an account" : "delete an account")) return;
    expect(job.answer.code == Code::ok || job.answer.code == Code::unknown_account,
           "an account's change is answered strangely");
}

void Operator::reload(const Config& config) {
    doing("reading the file again");
    ++scene_.commands;
    ++scene_.seen["file read again"];
    scene_.house.reload(config);
}

// --- anybody's

void Operator::learn(const AdminJob& job) {
    for (const auto& lease : job.answer.leases) {
        if (!lease->full) continue;
        leases_.push_back(*lease);
        scene_.know(lease->number);
    }
    for (const auto& claim : job.answer.claims) {
        if (!claim->full) continue;
        claims_.push_back(*claim);
        scene_.know(claim->number);
    }
}

void Operator::look() {
    static constexpr Ask kLists[] = {Ask::status,
                                     Ask::pools,
                                     Ask::slots,
                                     Ask::workers,
                                     Ask::claims,
                                     Ask::claims,
                                     Ask::leases,
                                     Ask::leases,
                                     Ask::clients,
                                     Ask::accounts,
                                     Ask::check,
                                     Ask::explain};
    AdminJob job;
    job.request.ask = kLists[dice().below(std::size(kLists))];
    if (job.request.ask == Ask::explain) {
        if (claims_.empty()) return;
        job.request.id = claims_[dice().below(claims_.size())].id;
    } else if (dice().one_in(2)) {
        job.request.pool = scene_.pools[dice().below(scene_.pools.size())].name;
    }
    if (job.request.ask == Ask::accounts) job.request.pool.clear();
    const Ask asked = job.request.ask;
    if (!ask(job, "look")) return;
    const bool may_be_gone = asked == Ask::explain && job.answer.code == Code::not_found;
    expect(job.answer.code == Code::ok || may_be_gone, "who looks is answered strangely");
    if (asked == Ask::check) {
        for (const std::string& wrong : job.answer.names)
            expect(false, "the broker's own check says: " + wrong);
    }
    learn(job);
}

void Operator::steer() {
    AdminJob job;
    const char* what = "cancel anybody's claim";
    if (!leases_.empty() && dice().one_in(2)) {
        job.request.ask = dice().one_in(2) ? Ask::release : Ask::renew;
        what =
            job.request.ask == Ask::release ? "release anybody's lease" : "renew anybody's lease";
        job.request.id = leases_.back().id;
        job.request.interval_ns = dice().below(60) * 1'000'000;
        leases_.pop_back();
    } else if (!claims_.empty()) {
        job.request.ask = Ask::cancel;
        job.request.id = claims_.back().id;
        claims_.pop_back();
    } else {
        return look();
    }
    if (!ask(job, what)) return;
    expect(job.answer.code == Code::ok || job.answer.code == Code::already_ended ||
               job.answer.code == Code::refused || job.answer.code == Code::not_found,
           std::string(what) + " is answered strangely");
}

void Operator::one_thing() {
    const bool reports = reported_pool() != shm::kNoRow;
    const uint64_t draw = dice().below(20);
    if (draw < 5 && reports) return pull();
    if (draw < 9 && reports) return say_what_is_so();
    if (draw < 13 && reports) {
        if (dice().one_in(2)) look();
        return report();
    }
    if (draw < 16 && reports) return change_account();
    if (draw < 17) return steer();
    look();
}

// Everything is again as the file says, and everybody has what he can pay with.
void Operator::finish() {
    bool done = false;
    while (!done) {
        scene_.world.pass(1'000'000);
        if (!scene_.house.open()) continue;
        const uint64_t lives = scene_.house.lives();
        reload(scene_.config);
        done = true;
        for (const std::string& other : {std::string("guests"), uid_account(kUids - 1)}) {
            AdminJob job;
            job.request.ask = Ask::delete_account;
            job.request.account = other;
            done = ask(job, "delete an account") && done;
        }
        // There may be no room for its limits until others have gone.
        for (const AccountSettings& account : scene_.config.accounts)
            done = set_account(account, true) && done;
        done = done && lives == scene_.house.lives();
    }
    finished_ = true;
}

void Operator::live() {
    const uint64_t until = 50 + dice().below(500);
    for (uint64_t i = 0; i < until && !scene_.calm; ++i) {
        one_thing();
        if (leases_.size() > 16) leases_.erase(leases_.begin());
        if (claims_.size() > 16) claims_.erase(claims_.begin());
        scene_.world.pass(dice().below(dice().one_in(20) ? 60'000'000 : 2'000'000));
    }
    if (scene_.calm) finish();
}

}  // namespace dibs::sim
