// tests/naive/journal_generator.hpp -- random journals, the same from the same seed everywhere.
//
// The generator plays what it writes to a naive core and looks at what became of it, so that most
// commands speak of claims, leases and slots that are there and some of what is not there any
// more. Times lean towards the instants at which something is due, one before and one after.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/naive/journal.hpp"

namespace dibs::naive {

// Which pools a journal is about.
enum class Flavour {
    kArrival,
    kAccounts,
    kPriorities,
    kElastic,
    kDispatched,
    kSeveral,
    kGangs,
    kElasticGangs
};

Journal generate_journal(uint64_t seed, size_t steps, Flavour flavour);

}  // namespace dibs::naive
