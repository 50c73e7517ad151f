// broker/core/rules/claims.hpp -- takes claims, lets them wait and ends them; finds them by key.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/core/module.hpp"
#include "broker/core/rules/router.hpp"
#include "broker/core/store/row_index.hpp"

namespace dibs::core {

// Rows of a claim's terms.
struct TermRows {
    uint32_t account = kNoRow;
    uint32_t base = kNoRow;
    uint32_t preferred = kNoRow;
};

struct Claims : Module<Claims> {
    explicit Claims(const State& rows)
        : Module(rows), keys(rows.claims.size() + rows.leases.size()) {}

    RowIndex keys;  // (uid, key) → claim row, or lease row behind them
    [[nodiscard]] uint32_t key_place(uint32_t holder) const;

    // claims.cpp
    void apply(const Claim& command);
    void apply(const Cancel& command);
    [[nodiscard]] Reason claim_refusal(const Claim& command, uint64_t* other) const;
    uint32_t accept(const Claim& command, uint64_t number, const TermRows& terms);
    void reject_unaccepted(const Claim& command, uint64_t number, Reason reason, uint64_t other);
    void wait_in_backlog(uint32_t claim);
    void wait_again(uint32_t claim);
    void end_claim(uint32_t claim, Outcome outcome, Reason reason, uint64_t value, bool tell);
    void drop_claim(uint32_t claim);
    // Takes a confirming claim off its slots; they stay chained from the returned first one.
    uint32_t unreserve(uint32_t claim);
    uint32_t leave_slots(uint32_t claim);  // that one row of it
    void count_end(uint32_t pool, Outcome outcome);
    void claim_deadline(uint32_t claim);
    void reservation_over(uint32_t claim);

    // keys.cpp
    void add_key(uint32_t session, const uint8_t* key, uint32_t holder);
    void remove_key(uint32_t session, const uint8_t* key, uint32_t holder);

    // routes.cpp
    [[nodiscard]] Ranking ranking(const Route& route) const;

  private:
    // routes.cpp
    [[nodiscard]] Candidate candidate(const RouteMember& member) const;

    // claims.cpp
    void apply_routed(const Claim& command, uint64_t number);
    [[nodiscard]] uint32_t place_in_backlog(const shm::ClaimRow& claim) const;
    void name_holder(Decision* decision, uint32_t pool) const;

    // keys.cpp
    [[nodiscard]] uint32_t find_key(uint32_t session, const Key& key) const;
};

}  // namespace dibs::core
