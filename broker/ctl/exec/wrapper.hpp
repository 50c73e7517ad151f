// broker/ctl/exec/wrapper.hpp -- the process that waits for the command and ends as it does.
// It passes signals on, lends the terminal, and learns of the lease's end.
//
// The session is the command's own (holder.hpp), so the wrapper may be killed: the command runs on,
// and its lease with it. As long as the wrapper is there, the lease's end is an event of that
// session: then it ends the command.
//
// Where it can, it puts the command into a control group of its own
// (broker/ctl/tree/tree_leaf.hpp): then the lease lasts until the last process of that has ended,
// also if the wrapper is killed, and what has to end ends with all that it has started. The wrapper
// stays outside. What a command leaves running is left alone; the wrapper says so, and leaves the
// session to the broker.
//
// The command of a task (--app, without --tree) has no session: the wrapper has it, and gives the
// lease back once the command has ended with 0, so that the task has completed; else it has failed.
// It waits for what the command has left running. If the wrapper is killed, the kernel kills the
// command, and nobody what that has started.
//
// Under --keepalive it prolongs the lease while the command runs and is not stopped, and under
// --preempt it tells the command that its slot is taken. Both go with it, so then the kernel kills
// the command with the wrapper (PR_SET_PDEATHSIG).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/ctl/exec/options.hpp"

namespace dibs::ctl::exec {

// The command's exit code, or one of the wrapper's own; ends this process by the command's signal
// if one ended the command. Failure.
int run_wrapped(const Options& options);

}  // namespace dibs::ctl::exec
