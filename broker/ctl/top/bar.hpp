// broker/ctl/top/bar.hpp -- draws a pool's slot states as a bar of letters, without colour.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "schemas/admin_generated.h"

namespace dibs::ctl::top {

// In a bar: what is in use comes first.
inline constexpr char kLeased = '#';
inline constexpr char kReserved = '+';
inline constexpr char kRecovering = '~';
inline constexpr char kIdle = '.';
inline constexpr char kUnknown = '?';

// Slots that are leased. A shared one is one, however many parts of it are leased or recovering.
uint64_t leased_slots(const admin::PoolT& pool);

// "[##+...]": a letter a slot as far as `width` goes; else in proportion, and what there is has one
// letter at least.
std::string bar(const admin::PoolT& pool, size_t width);

}  // namespace dibs::ctl::top
