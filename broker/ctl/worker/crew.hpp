// broker/ctl/worker/crew.hpp -- all the processes of one `dibs worker`, and the loop that serves
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/ctl/worker/options.hpp"

namespace dibs::ctl::worker {

// Runs until it is told to stop: TERM, INT or HUP lets the uses end and takes no more, a second one
// ends them. The exit code. Failure.
int run_crew(const Options& options);

}  // namespace dibs::ctl::worker
