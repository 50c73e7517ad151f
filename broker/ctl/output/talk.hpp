// broker/ctl/output/talk.hpp -- writes messages to standard error without waiting for a reader.
//
// A subcommand that holds or serves something must not depend on the reader of its messages: a full
// pipe, a stopped terminal or a closed one costs lines, which are counted, and nothing else. So it
// ignores SIGPIPE, gives its commands the disposition that it was started with, and says everything
// by talk(), after it has acted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace dibs::ctl {

// A line of its own; "dibs exec: the lease is lost", say. The newline comes from here.
void talk(const std::string& line);
// The same at a terminal, in place of what talk_over() said last; empty: takes that away.
void talk_over(const std::string& line);

// From here on a reader that is gone is an error of the write, not the end of the process.
void ignore_lost_readers();
// In a child, before it executes a command: SIGPIPE as it was before ignore_lost_readers().
void restore_lost_readers();

}  // namespace dibs::ctl
