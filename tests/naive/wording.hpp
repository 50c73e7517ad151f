// tests/naive/wording.hpp -- the names of the enumerators that journals and decisions print.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "broker/core/command.hpp"
#include "broker/core/decision.hpp"
#include "tests/naive/journal.hpp"

namespace dibs::naive {

const char* name_of(core::DecisionKind kind);
const char* name_of(shm::Outcome outcome);
const char* name_of(shm::Reason reason);
const char* name_of(shm::WhenBusy when);
const char* name_of(core::WorkerWord::Kind kind);
const char* name_of(StepKind kind);

// What only pools ordered by account look at.
std::string words_of(const Terms& terms);
std::string words_of(const AccountSpec& account);
std::string words_of_account_order(const core::PoolConfig& config);
std::string report_words(const Step& step);

// What only elastic pools look at.
std::string words_of_elastic(const core::PoolConfig& config);
std::string provision_words(const Step& step);

// What only dispatched pools look at.
std::string words_of_dispatch(const core::PoolConfig& config);
std::string dispatch_words(const Step& step);

// What only applications look at.
std::string gang_words(const Step& step);

}  // namespace dibs::naive
