// tests/naive/gang_rows.hpp -- compares what the two cores remember of applications.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "broker/core/core.hpp"
#include "tests/naive/naive_core.hpp"

namespace dibs::naive {

// In words what differs; empty: nothing.
std::string gang_difference(const core::Core& real, const NaiveCore& naive);

}  // namespace dibs::naive
