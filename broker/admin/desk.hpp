// broker/admin/desk.hpp -- answers admin requests in the turn: what one may see and do.
//
// One call does a bounded amount of work: a list looks at kRowsSeen rows and returns kRowsTold at
// most, and says where the next request continues. Of another uid's claims and leases a uid sees
// account and age only; it may end only its own. Steering goes through the core's commands, so it
// must be called inside a turn, before the pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "broker/admin/admin.hpp"
#include "broker/admission/quotas.hpp"
#include "broker/core/core.hpp"
#include "broker/core/rules/ended_leases.hpp"

namespace dibs {

class LeaseWords;
class PoolSets;
class Sessions;

class Desk {
  public:
    Desk(core::Core& core,
         const Quotas& quotas,
         LeaseWords& words,
         const Sessions& sessions,
         const PoolSets& sets)
        : core_(core), quotas_(quotas), words_(words), sessions_(sessions), sets_(sets) {}

    // The broker was asked to stop, and does at this instant (monotonic) at the latest; kNever:
    // once all leases have ended.
    void set_end(uint64_t end_ns) {
        stopping_ = true;
        end_ns_ = end_ns;
    }

    void serve(AdminJob& job);
    // Of a job that waits for offers or orders: true if its answer is there.
    [[nodiscard]] bool look_again(AdminJob& job) const;
    // Leases that have ended can be inspected for so long; 0 = not at all.
    void set_ended_leases_for(core::TimeNs for_ns);
    // Of a job that pulls: takes what was decided in this turn into its answer; also that one of
    // its workers is refused where the log had no room for all of them in the turn before.
    void take_pulled(AdminJob& job) const;

    static constexpr uint32_t kRowsSeen = 512;
    static constexpr uint32_t kRowsTold = 32;

  private:
    void status(AdminJob& job) const;
    void pools(AdminJob& job) const;
    void slots(AdminJob& job) const;
    void claims(AdminJob& job) const;
    void leases(AdminJob& job) const;
    void clients(AdminJob& job) const;
    void types(AdminJob& job) const;
    uint32_t reported_worker(AdminJob& job, uint32_t row) const;  // how many rows were told
    void explain(AdminJob& job) const;
    void steer_lease(AdminJob& job);
    [[nodiscard]] std::string released(uint32_t lease) const;
    void cancel(AdminJob& job);
    void drain(AdminJob& job, bool on);
    void stop_unused(AdminJob& job) const;
    void check(AdminJob& job) const;
    void create(AdminJob& job);

    // desk_accounts.cpp
    void accounts(AdminJob& job) const;
    void set_account(AdminJob& job);
    void reset_account(AdminJob& job);
    void delete_account(AdminJob& job);
    [[nodiscard]] std::unique_ptr<admin::AccountT> account_row(const AdminJob& job,
                                                               uint32_t row) const;
    // The row of a configured account that the request names; kNoRow: the answer says which are.
    [[nodiscard]] uint32_t configured_account(AdminJob& job) const;
    void unknown_account(AdminJob& job) const;

    // Walks rows from the cursor on; `tell(row)` says how much it told: 0 = nothing.
    template <class Tell>
    void page(AdminJob& job, uint32_t rows, const Tell& tell) const {
        const uint64_t from = std::min<uint64_t>(job.request.cursor, rows);
        const auto end = static_cast<uint32_t>(std::min<uint64_t>(from + kRowsSeen, rows));
        auto row = static_cast<uint32_t>(from);
        for (uint32_t told = 0; row < end && told < kRowsTold; ++row)
            told += tell(row);
        job.answer.more = row < rows;
        job.answer.cursor = row;
    }
    // The pool that the request names: kNoRow = all. False: no such pool, and the answer says so.
    [[nodiscard]] bool pool_of(AdminJob& job, uint32_t* pool) const;

    // desk_reports.cpp
    void report(AdminJob& job);
    void announce_again(AdminJob& job, uint32_t pool);
    void pull(AdminJob& job);
    void take_result(AdminJob& job, size_t first) const;
    static void refuse(AdminJob& job, shm::Reason reason);
    [[nodiscard]] bool reports_to(AdminJob& job, uint32_t* pool) const;
    [[nodiscard]] core::TimeNs event_of(const AdminJob& job) const;
    [[nodiscard]] bool is_known(uint64_t number) const;
    [[nodiscard]] std::string being_killed(uint32_t lease) const;
    [[nodiscard]] std::vector<std::string> to_provision(uint64_t number,
                                                        std::string_view labels) const;

    // desk_dispatch.cpp
    [[nodiscard]] bool dispatches(AdminJob& job, uint32_t* pool) const;
    void report_dispatched(AdminJob& job);
    void set_behaviour(AdminJob& job, uint32_t pool);
    void take_refusal(AdminJob& job, uint32_t pool, size_t first) const;
    [[nodiscard]] std::string sentence_on(const admin::RequestT& request,
                                          uint32_t pool,
                                          shm::Reason reason) const;
    void entries(AdminJob& job) const;
    [[nodiscard]] uint32_t entries_max() const;
    [[nodiscard]] std::unique_ptr<admin::EntryT> entry_row(uint32_t row) const;
    void orders(AdminJob& job) const;
    [[nodiscard]] std::unique_ptr<admin::OrderT> order_row(uint32_t row) const;
    [[nodiscard]] bool look_for_orders(AdminJob& job) const;

    // desk_applications.cpp
    void applications(AdminJob& job) const;
    void tasks(AdminJob& job) const;
    [[nodiscard]] uint32_t find_application(uint32_t uid, std::string_view name) const;
    [[nodiscard]] std::string pool_name_of(const shm::AppRow& app) const;
    [[nodiscard]] bool is_asked_for(const AdminJob& job, const shm::AppRow& app) const;
    [[nodiscard]] std::unique_ptr<admin::ApplicationT> application_row(const AdminJob& job,
                                                                       uint32_t row) const;
    [[nodiscard]] std::unique_ptr<admin::GroupT> group_row(uint32_t pool, uint32_t row) const;
    [[nodiscard]] std::unique_ptr<admin::TaskT> task_row(uint32_t row) const;
    // Of what belongs to applications and to no session: whose, and of which group.
    [[nodiscard]] bool sees_claim(const AdminJob& job, uint32_t claim) const;
    void refuse_ask(AdminJob& job, uint32_t claim) const;
    [[nodiscard]] bool sees_application(const AdminJob& job, uint32_t app) const;
    void placeholder_of(const AdminJob& job, const shm::SlotRow& slot, admin::SlotT* told) const;
    [[nodiscard]] std::string account_of_ask(const shm::ClaimRow& claim) const;
    [[nodiscard]] std::unique_ptr<admin::ClaimT> ask_row(const AdminJob& job, uint32_t row) const;
    // Whose a claim or a lease is; `task` may be kNoRow.
    void member_of(uint32_t task, auto* told) const;
    void explain_gang(const AdminJob& job,
                      const core::Explanation& why,
                      admin::ExplanationT* told) const;

    // desk_application_events.cpp
    void application(AdminJob& job);
    void add_application(AdminJob& job, uint32_t uid);
    void refuse_application(AdminJob& job, shm::Reason reason, uint64_t value) const;
    [[nodiscard]] std::string sentence_on_task(const admin::RequestT& request,
                                               shm::Reason reason) const;
    [[nodiscard]] std::string no_group(uint32_t uid, const admin::RequestT& request) const;
    [[nodiscard]] std::string unfinished(uint32_t uid, std::string_view name, uint64_t count) const;

    // desk_offers.cpp
    void offers(AdminJob& job) const;
    [[nodiscard]] std::vector<uint32_t> offering(const AdminJob& job) const;
    [[nodiscard]] uint64_t stamp_of(const std::vector<uint32_t>& pools) const;
    [[nodiscard]] bool list_offers(AdminJob& job, uint32_t pool) const;
    void inspect(AdminJob& job) const;
    [[nodiscard]] std::unique_ptr<admin::LeaseT> ended_row(const AdminJob& job,
                                                           const core::EndedLease& ended) const;
    void drain_if_idle(AdminJob& job, uint32_t pool);

    // desk_types.cpp
    [[nodiscard]] std::unique_ptr<admin::ElasticT> elastic_row(uint32_t pool) const;
    [[nodiscard]] std::unique_ptr<admin::TypeT> type_row(const AdminJob& job, uint32_t row) const;
    uint32_t count_by_type(AdminJob& job, uint32_t slot) const;  // how many rows were told

    // desk_rows.cpp
    [[nodiscard]] bool sees(const AdminJob& job, uint32_t session) const;
    [[nodiscard]] std::string account_of(uint32_t session) const;
    [[nodiscard]] std::string payer(uint32_t account, uint32_t session) const;
    // Of a claim or lease: where accounts only count, its session's.
    template <class Row>
    [[nodiscard]] std::string payer_of(const Row& row) const;
    [[nodiscard]] std::string client_of(uint32_t session) const;
    [[nodiscard]] std::string name_of(uint32_t pool) const;
    [[nodiscard]] uint64_t age(uint64_t since_ns) const;
    [[nodiscard]] uint64_t left(uint64_t until_ns) const;
    [[nodiscard]] std::unique_ptr<admin::PoolT> pool_row(uint32_t row) const;
    [[nodiscard]] std::unique_ptr<admin::SlotT> slot_row(const AdminJob& job, uint32_t row) const;
    [[nodiscard]] std::unique_ptr<admin::ClaimT> claim_row(const AdminJob& job, uint32_t row) const;
    // Its process is dead, and processes of its tree are not.
    [[nodiscard]] bool is_outlived(uint32_t session) const;
    [[nodiscard]] std::unique_ptr<admin::LeaseT> lease_row(const AdminJob& job, uint32_t row) const;
    [[nodiscard]] std::unique_ptr<admin::ClientT> client_row(const AdminJob& job,
                                                             uint32_t row) const;
    void slot_holder(const AdminJob& job, const shm::SlotRow& slot, admin::SlotT* told) const;
    [[nodiscard]] std::unique_ptr<admin::ExplanationT> explanation(const AdminJob& job,
                                                                   uint32_t claim) const;

    core::Core& core_;
    const Quotas& quotas_;
    LeaseWords& words_;
    const Sessions& sessions_;
    const PoolSets& sets_;
    bool stopping_ = false;
    uint64_t end_ns_ = shm::kNever;
    uint64_t pulls_ = 0;
    core::TimeNs ended_leases_for_ns_ = 0;
};

}  // namespace dibs
