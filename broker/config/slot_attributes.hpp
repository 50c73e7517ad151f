// broker/config/slot_attributes.hpp -- reads what a counted pool's slots bring with their grants.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/config/config.hpp"
#include "broker/config/config_section.hpp"

namespace dibs {

// The keys `attributes` and `environment` of a pool.
void read_slot_attributes(Section& section, PoolSettings& pool, Mistakes& mistakes);

}  // namespace dibs
