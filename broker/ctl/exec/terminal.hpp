// broker/ctl/exec/terminal.hpp -- lends the terminal's foreground to the command.
// The command's process group gets it as a shell's job does, so that Ctrl-C and Ctrl-Z reach the
// command. Without a terminal, or where this process is not in its foreground, nothing happens.
//
// SIGTTOU must be blocked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace dibs::ctl::exec {

class Terminal {
  public:
    Terminal();  // looks for one among the standard descriptors

    void lend(pid_t group);
    void take_back();

  private:
    int fd_ = -1;
    bool lent_ = false;
};

}  // namespace dibs::ctl::exec
