// broker/segments/failed_state.hpp -- saves a STATE that failed its checks, for later inspection.
//
// It is never repaired by guess. Its bytes go to a file, failed-<epoch>.state, or
// failed-<epoch>.2.state and so on where that exists already, which `dibs fsck` reads; every
// session ends, each client is told, and the broker begins empty, one epoch later.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "broker/config/config.hpp"
#include "broker/takeover/inheritance.hpp"
#include "broker/takeover/keeper_link.hpp"

namespace dibs {

// Leaves an inheritance of the listener and the watch alone, and the epoch to go on from.
void put_aside(Inheritance& inheritance,
               KeeperLink& keeper,
               const Config& config,
               const std::string& why);

}  // namespace dibs
