// broker/core/rules/reports.hpp -- carries out reports on workers from outside, and their pulls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "broker/core/module.hpp"
#include "broker/core/turn.hpp"

namespace dibs::core {

struct Reports : Module<Reports> {
    explicit Reports(const State& rows) : Module(rows) {}

    // reports.cpp
    void apply(const Report& report);
    void apply(const Unassign& unassign);
    void apply(const UpdateClaim& update);
    [[nodiscard]] uint32_t lease_on(uint32_t slot) const;
    void end_strictly(uint32_t lease);
    [[nodiscard]] uint32_t counts_on(uint32_t slot) const;

    // pulls.cpp
    void apply(const Pull& pull);
    bool go_on_pulling();
    bool tell_pulled();
    bool forget_workers();
    [[nodiscard]] TimeNs next_forgotten();
    [[nodiscard]] TimeNs forgotten_at(const shm::SlotRow& slot) const;
    void watch_reported(uint32_t slot);
    void watch_all_reported(uint32_t pool);
    void assignment_begins(uint32_t slot);
    void assignment_ends(uint32_t slot);

  private:
    // reports.cpp
    [[nodiscard]] Reason report_refusal(uint32_t pool, std::string_view worker) const;
    [[nodiscard]] TimeNs latest_confirmed(uint32_t slot) const;
    [[nodiscard]] uint32_t runs_on(uint32_t slot) const;
    [[nodiscard]] bool is_held_strictly(uint32_t slot) const;
    [[nodiscard]] bool is_asked_for(uint32_t slot, uint32_t claim) const;
    Reason report_idle(uint32_t pool,
                       std::string_view worker,
                       std::span<const std::string_view> labels,
                       TimeNs event_ns,
                       uint32_t* slot);
    uint32_t make_reported(uint32_t pool, std::string_view worker, uint32_t set);
    void report_running(uint64_t number, uint32_t slot, TimeNs event_ns);
    void report_absent(uint64_t number, TimeNs event_ns);
    void forget_cancellations(uint32_t pool, uint64_t number, TimeNs event_ns);
    void confirm_slot(uint32_t slot, TimeNs event_ns);
    void confirm_claim(uint32_t claim, TimeNs event_ns);
    void unassign(uint32_t claim, TimeNs event_ns);
    void take_new_terms(uint32_t claim, const UpdateClaim& command, const TermRows& rows);
    void drop_run(uint32_t claim, Reason reason, bool again);
    void drop_waiting(uint32_t claim, Reason reason);
    void delete_worker(uint32_t slot);
    void send_away(uint32_t slot);

    // pulls.cpp
    bool carry_out(const Pull& pull, size_t* next);
    bool time_out_assignments(uint32_t pool, TimeNs event_ns);
    void order_oldest_assignments(uint32_t pool);
    void set_forgotten(uint32_t slot, TimeNs due_ns);
};

}  // namespace dibs::core
