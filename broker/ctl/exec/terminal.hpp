// broker/ctl/exec/terminal.hpp -- the terminal's foreground, lent to the command's process group as
// a shell lends it to a job, so that Ctrl-C and Ctrl-Z reach the command. Nothing happens where
// there is no terminal, or where this process is not in its foreground.
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
