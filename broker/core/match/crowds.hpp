// broker/core/match/crowds.hpp -- keeps alike claims and alike slots of a pool by account together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "broker/core/match/account_book.hpp"
#include "broker/core/module.hpp"
#include "broker/core/rules/claims.hpp"
#include "broker/core/turn.hpp"

namespace dibs::core {

struct Crowds : Module<Crowds> {
    explicit Crowds(const State& rows) : Module(rows) {}

    // account_order.cpp
    Reason take_terms(const ClaimTerms& terms, uint32_t session, uint32_t blocks, TermRows* rows);
    void bring_terms(uint32_t claim, const Claim& command, const TermRows& rows);
    void join_crowd(uint32_t claim);
    void leave_crowd(uint32_t claim);
    void wait_by_account(uint32_t claim);
    void wait_in_crowd(uint32_t claim);
    void leave_waiting(uint32_t claim);
    void forget_claim(uint32_t claim);
    void leave_session(uint32_t session);
    void join_stall(uint32_t slot);
    void relabel(uint32_t slot, uint32_t set);
    Reason intern_announced(std::span<const std::string_view> labels);
    void leave_state(uint32_t slot, SlotState from, SlotState to);
    void enter_state(uint32_t slot, SlotState from, SlotState to);
    bool list_slot(uint32_t slot, bool in);
    void stand_idle(uint32_t slot);
    void stand_leased(uint32_t slot);
    void leave_leased(uint32_t slot);
    void change_lists(uint32_t first, uint32_t last, bool to_leased);
    [[nodiscard]] bool labels_allow(uint32_t account,
                                    uint32_t pool,
                                    uint32_t set,
                                    bool at_limit) const;
    void count_labels(uint32_t account, uint32_t slot, int32_t change);
    void count_label_set(uint32_t account, uint32_t pool, uint32_t set, int32_t change);
    void recount_labels(uint32_t account);
    [[nodiscard]] uint32_t occupied_slot(uint32_t claim) const;
    [[nodiscard]] uint32_t next_occupied(uint32_t claim, uint32_t slot) const;
    [[nodiscard]] uint32_t fanout_left(const Crowd& crowd) const;
    void count_fanout(uint32_t claim, uint8_t at_class, int32_t change);
    void occupy(uint32_t claim, uint32_t first_slot, int32_t change);
    [[nodiscard]] bool lacks_preferred(uint32_t claim, uint32_t slot);

    // account_pass.cpp
    bool pass_by_account(uint32_t pool);
    [[nodiscard]] uint8_t class_now(const Crowd& crowd) const;
    [[nodiscard]] uint8_t class_of(const Crowd& crowd, uint8_t best) const;
    void give_slots(uint32_t claim, std::span<const uint32_t> slots, uint32_t to_confirm);
    void choose_slots(const Crowd& crowd, bool provisioned);
    void note_kept(uint32_t claim);

    // account_due.cpp
    // When time alone changes what a pass may do; kNever = it does not.
    [[nodiscard]] TimeNs next_crossing() const;

  private:
    // account_order.cpp
    void leave_stall(uint32_t slot);
    void stand_by_fence(uint32_t slot);
    void leave_idle(uint32_t slot);

    // account_pass.cpp
    void start_account_pass(uint32_t pool);
    void next_account_step();
    void enter_class();
    bool account_step();
    bool serve_class(bool provisioned);
    bool serve_head(uint32_t crowd, bool provisioned);
    void choose_slots_slowly(const Crowd& crowd, bool provisioned, bool limited);
    [[nodiscard]] bool can_serve(const Crowd& crowd, uint32_t stall, bool provisioned);
    [[nodiscard]] bool limits_stop(const Crowd& crowd);
    void hold_back(uint32_t crowd, bool provisioned);
    [[nodiscard]] bool holds_in_vain(uint32_t crowd);
    bool all_held_back();
    void spill_throttled();

    struct Crossings;
};

}  // namespace dibs::core
