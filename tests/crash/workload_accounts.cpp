// tests/crash/workload_accounts.cpp -- what is drawn of accounts, and of workers that are reported.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include "tests/crash/workload.hpp"

namespace dibs::tests {

using shm::kNoRow;

bool Workload::set_account() {
    const std::string name = any_account();
    std::array<int64_t, 5> rate{};
    std::array<int64_t, 5> balance{};
    for (size_t at_class = 0; at_class < rate.size(); ++at_class) {
        rate[at_class] = static_cast<int64_t>(below(3)) * 700'000;
        balance[at_class] = static_cast<int64_t>(below(30)) - 15;
    }
    const core::AccountConfig::Limit limit{.key = "k", .limit = static_cast<uint32_t>(below(4))};
    const bool limited = below(2) == 0;
    return core_.set_account({.name = name,
                              .rate = rate,
                              .charge_max_ns = 10'000,
                              .fanout_max = static_cast<uint32_t>(below(3)),
                              .label_limits = {&limit, limited ? size_t{1} : 0},
                              .free_tasks_disabled = below(4) == 0,
                              .balance = balance,
                              .keep_balance = below(2) == 0},
                             nullptr);
}

uint64_t Workload::any_number() {
    const uint32_t row = any_claim();
    return row == kNoRow ? 0 : core_.claim(row).arrival;
}

bool Workload::report(core::Report::Kind kind) {
    const std::string worker = any_worker();
    const std::vector<std::string_view> labels = any_labels();
    core_.apply(core::Report{.kind = kind,
                             .pool = any_farm(),
                             .worker = worker,
                             .claim = any_number(),
                             .labels = labels,
                             .event_ns = below(2) == 0 ? shm::kNever : now_ - below(1000)});
    return true;
}

uint32_t Workload::any_farm() {
    return below(2) == 0 ? kFarm : kVault;
}

bool Workload::pull() {
    const std::string one = any_worker();
    const std::string other = any_worker();
    const std::vector<std::string_view> labels = any_labels();
    const std::array<core::Pull::Worker, 2> workers = {{{one, labels}, {other, labels}}};
    core_.apply(core::Pull{.pool = any_farm(), .workers = workers});
    return true;
}

bool Workload::update_claim() {
    const std::string account = any_account();
    const std::vector<std::string_view> labels = any_labels();
    core_.apply(core::UpdateClaim{.claim = any_number(),
                                  .account_given = below(2) == 0,
                                  .account = account,
                                  .labels_given = below(2) == 0,
                                  .labels = labels});
    return true;
}

}  // namespace dibs::tests
