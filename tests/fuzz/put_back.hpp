// tests/fuzz/put_back.hpp -- a STATE's bytes as they were before a core wrote to them.
//
// Nine tenths of a small STATE are its log, of which an input uses little: what lies behind that is
// left alone, where it would take most of an execution to copy or to zero it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace dibs::fuzz {

// As `base`, which has the same layout. Only what a core writes is looked for: what else has been
// written to the log is the caller's to put back, afterwards. `base` empty: zeroes, as in memory
// that is new; then the layout is what the STATE itself says, and only a core may have written it.
void put_back(std::span<std::byte> state, std::span<const std::byte> base = {});

}  // namespace dibs::fuzz
