// broker/admission/patience.hpp -- how many entries of a session one turn reads.
//
//                      most of what a turn read of it was refused
//   budget   64 ─────────────────► 16 ─────────────────► 4 ─────────────────► 1    4 and 1: shunned
//             ▲                     │                    │                    │
//             └──── twice as many ──┴────────────────────┴──── else ──────────┘
//
// Whoever waits for an answer waits for everything that the same turn reads, so a session that says
// nothing but nonsense is read in small bites, with a pause behind each
// (broker/admission/penalty.hpp): it pays with its own time. One whose claims are refused now and
// then keeps its place: one refusal leaves 16, which it would not miss, and the next good entry
// makes that up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "broker/turn/ingest.hpp"
#include "shm/layout.hpp"

namespace dibs {

class Patience {
  public:
    static constexpr uint32_t kMost = Ingest::kSessionBudget;
    static constexpr uint32_t kShunned = 4;

    explicit Patience(uint32_t sessions) : of_(sessions) {}

    [[nodiscard]] uint32_t budget(uint32_t row) const { return of_[row].budget; }
    [[nodiscard]] bool shuns(uint32_t row) const { return of_[row].budget <= kShunned; }
    // How many sessions are.
    [[nodiscard]] uint32_t shunned() const { return shunned_; }

    // An entry of it was answered with this. What a client may meet that makes no mistake, as that
    // a pool is busy, is no refusal; nor is what a worker says of a slot that is freed meanwhile.
    void answered(uint32_t row, shm::Reason reason, bool has_slots = false) {
        if (has_slots && is_crossing(reason)) return;
        if (is_nonsense(reason)) ++of_[row].refused;
    }
    // The turn that has read so many entries of it is committed.
    void settle(uint32_t row, uint64_t entries) {
        Of& one = of_[row];
        const bool mostly = uint64_t{one.refused} * 2 > entries;
        one.refused = 0;
        if (!mostly && one.budget == kMost) return;
        change(one, mostly ? std::max(one.budget / 4, 1U) : std::min(one.budget * 2, kMost));
    }
    // It has gone: another one may have its row.
    void forget(uint32_t row) {
        change(of_[row], kMost);
        of_[row].refused = 0;
    }

  private:
    struct Of {
        uint32_t budget = kMost;
        uint32_t refused = 0;
    };

    static bool is_crossing(shm::Reason reason) {
        return reason == shm::Reason::kStale || reason == shm::Reason::kState ||
               reason == shm::Reason::kNotFound;
    }
    static bool is_nonsense(shm::Reason reason) {
        switch (reason) {
            case shm::Reason::kUnknownPool:
            case shm::Reason::kTooManyUnits:
            case shm::Reason::kLimit:
            case shm::Reason::kPayload:
            case shm::Reason::kNotFound:
            case shm::Reason::kStale:
            case shm::Reason::kNotHolder:
            case shm::Reason::kState:
            case shm::Reason::kNameInUse:
            case shm::Reason::kMalformed:
            case shm::Reason::kNotAllowed:
            case shm::Reason::kUnkillable:
                return true;
            default:
                return false;
        }
    }
    void change(Of& one, uint32_t budget) {
        shunned_ -= one.budget <= kShunned ? 1 : 0;
        one.budget = budget;
        shunned_ += one.budget <= kShunned ? 1 : 0;
    }

    std::vector<Of> of_;
    uint32_t shunned_ = 0;
};

}  // namespace dibs
