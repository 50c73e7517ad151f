// broker/ctl/exec/wrapper.hpp -- the process that waits for the command: it passes signals on,
// lends the terminal, and ends as the command ends.
//
// Without --keepalive it has no session. It may be killed: the command runs on, and its lease with
// it, since the command's own process claimed.
//
// With --keepalive the session is the wrapper's. It keeps the lease alive while the command runs
// and is not stopped; if the lease ends all the same, it ends the command. Its own death ends the
// lease, so the kernel kills the command with it (PR_SET_PDEATHSIG).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/ctl/exec/options.hpp"

namespace dibs::ctl::exec {

// The command's exit code, or one of the wrapper's own; ends this process by the command's signal
// if one ended the command. Failure.
int run_wrapped(const Options& options);

}  // namespace dibs::ctl::exec
