// benchmarks/account_races.hpp -- what pools ordered by account cost, beside what floor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/races.hpp"

namespace dibs::bench {

void race_accounts(const Stage& stage);           // a claim beside the floor of the FIFO pool's
void race_account_growth(const Stage& stage);     // 10^2 to 10^6 waiting, 10^2 to 10^5 slots
void measure_account_memory(const Stage& stage);  // of a million claims that wait
void race_trace(const Stage& stage);              // --trace FILE, an account per user

}  // namespace dibs::bench
