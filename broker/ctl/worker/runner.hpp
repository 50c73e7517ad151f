// broker/ctl/worker/runner.hpp -- runs the processes of several commands in one loop: of each type
// of a `dibs-runner`, or of the one of a `dibs worker`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "broker/ctl/worker/options.hpp"

namespace dibs::ctl::worker {

// Runs until a signal stops it: TERM or INT lets the uses end and takes no more, a second one ends
// them. The exit code. Failure.
//
// HUP is one of these, too, where `reload` is null; else what it returns is run from then on: a
// type that is not among it drains, one that is new begins, and what has changed applies to
// processes that are started. Nothing: all stays as it is.
using Reload = std::function<std::optional<std::vector<Options>>()>;
int run_crews(const std::vector<Options>& all, const Reload& reload);

}  // namespace dibs::ctl::worker
