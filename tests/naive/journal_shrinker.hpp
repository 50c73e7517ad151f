// tests/naive/journal_shrinker.hpp -- makes a journal smaller while the cores go on disagreeing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/naive/journal.hpp"

namespace dibs::naive {

// True if the cores disagree on the journal, or the process that plays it dies.
bool still_disagrees(const Journal& journal);

// Drops ever smaller runs of steps, greedily.
Journal shrink(Journal journal);

}  // namespace dibs::naive
