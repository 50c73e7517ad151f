// broker/ctl/exec/terminal.cpp -- gives the terminal's foreground away and takes it back.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/terminal.hpp"

#include <unistd.h>

#include <initializer_list>

namespace dibs::ctl::exec {

Terminal::Terminal() {
    for (const int fd : {STDIN_FILENO, STDERR_FILENO, STDOUT_FILENO}) {
        if (fd_ < 0 && tcgetpgrp(fd) == getpgrp()) fd_ = fd;
    }
}

void Terminal::lend(pid_t group) {
    if (fd_ < 0) return;
    const pid_t present = tcgetpgrp(fd_);
    lent_ = present == group || (present == getpgrp() && tcsetpgrp(fd_, group) == 0);
}

void Terminal::take_back() {
    if (lent_) tcsetpgrp(fd_, getpgrp());
    lent_ = false;
}

}  // namespace dibs::ctl::exec
