// tests/sim/auditor.hpp -- who hears each command and counts after each commit: money, limits, and
// which leases somebody else may have ended.
//
// The book that it keeps of balances and costs knows nothing of how the core keeps its own: what a
// second of time does is worked out from rates and from who ran, what a preemption moves from the
// decision. What is above a limit may have nobody new: limits change, and bind grants made since.
// A broker that dies leaves what its last written turn left, to the unit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "broker/core/core.hpp"
#include "broker/core/tap.hpp"
#include "tests/sim/ledger.hpp"

namespace dibs::sim {

class Auditor final : public core::Tap {
  public:
    // check_all() runs behind every so-manieth commit.
    Auditor(Ledger& ledger, uint64_t check_every) : ledger_(ledger), check_every_(check_every) {}

    void attach(core::Core& core);  // a life begins, before its first turn
    void leave() { core_ = nullptr; }
    // Before an administrator's command does anything.
    void when_administered(std::function<void()> call) { administered_ = std::move(call); }

    [[nodiscard]] const std::map<std::string, uint64_t>& seen() const { return seen_; }

    void hear(const core::CommandRef& command) override {
        std::visit([this](const auto* given) { heard(*given); }, command);
    }
    void hear_of_commit() override;

  private:
    using Money = std::array<int64_t, shm::kClasses>;
    struct Purse {
        std::string name;
        Money balance = {};
        Money rate = {};
        uint64_t charge_max_ns = 0;
        std::array<uint32_t, shm::kClasses> running = {};
    };
    struct Run {
        uint8_t at_class = 0;
        Money cost = {};
    };
    struct Book {
        uint64_t turns = 0;  // of STATE
        uint64_t now_ns = 0;
        std::map<uint32_t, Purse> purses;      // of configured accounts, by row
        std::map<uint64_t, Run> runs;          // by lease
        std::map<uint64_t, Money> taken_over;  // what a claim's run will begin with, by number
    };
    using Crowd = std::tuple<std::string, uint32_t, std::string>;  // account, pool, all labels
    struct Held {
        uint32_t units = 0;
        std::set<uint64_t> claims;
        std::set<std::pair<uint32_t, uint32_t>> sets;  // of the labels, as they were asked for
    };
    using Label = std::tuple<std::string, uint32_t, std::string>;  // account, pool
    using Place = std::pair<uint64_t, uint32_t>;                   // claim and slot

    template <class Command>
    void heard(const Command&) {}
    void heard(const core::PoolConfig& pool);
    void heard(const core::AccountConfig& account);
    void heard(const core::DeleteAccount& deleted);
    void heard(const core::ResetBalance& reset);
    void heard(const core::SessionDeath& death);
    void heard(const core::Harvest& harvest);
    void heard(const core::Touch& touch);
    void heard(const core::WorkerWord& word);
    void heard(const core::Steer& steer);
    void heard(const core::Report& report);
    void heard(const core::Pull& pull);
    void heard(const core::Unassign& unassign);
    void heard(const core::UpdateClaim& update);

    void expect(bool holds, const std::string& what);
    void doubt_lease(uint32_t row, bool strict_too);
    void doubt_claim(uint64_t number);
    void doubt_slot(uint32_t row, bool strict_too);
    void doubt_worker(uint32_t slot, uint64_t at_ns);
    void doubt_if_reported(uint32_t slot, uint64_t at_ns);
    [[nodiscard]] uint64_t time_of(uint64_t event_ns) const;
    [[nodiscard]] uint32_t lease_of(uint64_t claim) const;
    [[nodiscard]] bool is_on(uint32_t lease, uint32_t slot) const;
    void step(uint64_t now_ns);
    [[nodiscard]] Purse* purse_of(std::string_view name);
    [[nodiscard]] Purse purse_at(uint32_t row) const;
    [[nodiscard]] std::map<uint64_t, Run> runs_now() const;
    [[nodiscard]] bool is_configured(uint32_t row) const;
    [[nodiscard]] std::string name_of(uint32_t account) const;
    void note(const core::Decision& decision);
    void take_decisions();
    void compare(const Book& book, const std::string& when);
    void load();
    void count_running();
    void take_over();
    [[nodiscard]] std::string labels_in(uint32_t set) const;
    [[nodiscard]] std::string labels_of(const shm::ClaimRow& claim) const;
    void count_crowds();
    void count_labels();
    [[nodiscard]] bool counts(uint32_t claim) const;
    [[nodiscard]] uint32_t claim_on(uint32_t slot) const;

    Ledger& ledger_;
    uint64_t check_every_;
    core::Core* core_ = nullptr;
    std::function<void()> administered_ = [] {};
    Book book_;
    Book written_;  // behind the last turn that wrote anything
    std::map<Crowd, Held> crowds_;
    std::map<Label, std::set<Place>> labels_;
    std::set<Place> places_;                 // with whatever labels
    std::map<uint32_t, uint32_t> promised_;  // claim, by slot
    bool begun_ = false;
    uint64_t turns_ = 0;
    std::map<std::string, uint64_t> seen_;  // what has happened how often
};

}  // namespace dibs::sim
