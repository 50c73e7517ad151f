// broker/core/match/invariants.hpp -- states what holds in pools ordered by account.
//
// Where no pool is one there is no book, and where the rows disagree its lists are not walked.
// match/invariants.cpp has slots, claims, crowds and stalls, ledger/invariants.cpp accounts, runs
// and tenants.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/core/parts.hpp"
#include "broker/core/store/invariant.hpp"

namespace dibs::core {

// What such pools alone may do.
inline bool may_preempt(const shm::PoolRow& pool) {
    return pool.order == shm::PoolOrder::kAccount;
}
inline bool may_hold_over(const shm::PoolRow& pool) {
    return pool.order == shm::PoolOrder::kAccount;
}
inline bool takes_reports(const shm::PoolRow& pool) {
    return pool.order == shm::PoolOrder::kAccount;
}

// Of one row, whatever others say. There is a book.
void slot_in_book(const Core::Parts& parts, uint32_t row, Wrongs* wrongs);
void claim_in_book(const Core::Parts& parts, uint32_t row, Wrongs* wrongs);

// Of slots with resources.
void check_vectors(const Core::Parts& parts, Wrongs* wrongs);

// All of it.
void check_book(const Core::Parts& parts, Wrongs* wrongs);

}  // namespace dibs::core
