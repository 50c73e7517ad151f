// broker/admission/descriptors.hpp -- sizes the descriptor table, and says for how many sessions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace dibs {

// Raises the limit of this process as far as it may go.
void raise_descriptor_limit();
// Throws where it stays below what a broker with one client has open.
void expect_descriptors_for_one();

// What the limit has room for.
struct DescriptorBudget {
    uint64_t descriptors = 0;
    uint32_t sessions = 0;  // each holds its socket, pidfd, bell, events, UP, DOWN; perhaps a tree
    size_t callers = 0;     // that have connected and not yet said Hello
};
[[nodiscard]] DescriptorBudget descriptor_budget(uint64_t limit);
[[nodiscard]] DescriptorBudget descriptor_budget();  // of this process

}  // namespace dibs
