// tests/naive/journal_bytes.hpp -- what a journal's claims and slots carry, told by their labels.
//
// The naive core only counts bytes; the core keeps them in its arena. So the bytes of every step
// are another pattern, and what lies in the arena can be compared with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "broker/core/core.hpp"
#include "tests/naive/journal.hpp"

namespace dibs::naive {

// Valid for ever.
std::span<const uint8_t> payload_of(const Step& step);
std::string attributes_of(const Step& step);

// Compares the payload of every pending claim and the attributes of every slot with the step that
// brought them. Empty, or which differ.
std::string wrong_bytes(const core::Core& core, const Journal& journal);

}  // namespace dibs::naive
