// tests/naive/statement_words.hpp -- a statement is put to the test, and named where it is broken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/naive/statements.hpp"

namespace dibs::naive {

// Words are made only where it is broken. Counted where it might have been broken: where it cannot
// have been in this turn, whoever asks says so.
template <class Words>
bool Statements::hold(size_t statement, bool holds, const Words& words, bool might_break) {
    if (might_break) tested_[statement] += 1;
    if (holds || !broken_.empty()) return holds;
    broken_ = "S0." + std::to_string(statement) + ": " + words();
    return false;
}

inline std::string words_of(const JudgedClaim& claim) {
    return "claim " + std::to_string(claim.number);
}

inline std::string words_of(const JudgedSlot& slot) {
    return "slot " + std::to_string(slot.number) + " of pool " + std::to_string(slot.pool);
}

inline std::string words_of(const JudgedPool& pool) {
    return "pool " + std::to_string(pool.label);
}

}  // namespace dibs::naive
