// broker/ctl/worker/crew.hpp -- runs all processes of one `dibs worker` in one loop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/ctl/worker/options.hpp"

namespace dibs::ctl::worker {

// Runs until a signal stops it: TERM, INT or HUP lets the uses end and takes no more, a second one
// ends them. The exit code. Failure.
int run_crew(const Options& options);

}  // namespace dibs::ctl::worker
