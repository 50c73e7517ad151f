// broker/ctl/stop_signals.hpp -- the signals that end a subcommand in order.
//
// These are TERM, INT and HUP. The parent process may have had INT or HUP ignored, as nohup(1) and
// a shell's background job do: then they end nothing. Once blocked, a signal is delivered whether
// it is ignored or not, so the disposition is read before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace dibs::ctl {

inline bool ignored_from_the_start(int signal) {
    struct sigaction action = {};
    return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

inline sigset_t stop_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    for (const int signal : {SIGINT, SIGHUP}) {
        if (!ignored_from_the_start(signal)) sigaddset(&set, signal);
    }
    return set;
}

}  // namespace dibs::ctl
