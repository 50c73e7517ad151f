// clientlib/timed_call.hpp -- calls on a socket with a deadline that signals do not shorten.
//
// A call on a socket with a time limit ends with EINTR at every signal that has a handler,
// SA_RESTART or not, and after a stop and continue that has none: the kernel does not know how much
// of the limit is left. The loop here knows it and calls again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdint>

#include "clientlib/clock.hpp"
#include "dibs/dibs.h"

namespace dibs::client {

// `limit`: SO_RCVTIMEO or SO_SNDTIMEO, which is set for each try. As `call`, which is made at least
// once; EAGAIN when the moment has come.
template <typename Call>
auto timed_call(int socket, int limit, uint64_t until_ns, Call call) {
    for (;;) {
        const uint64_t now = monotonic_ns();
        const uint64_t left = now < until_ns ? until_ns - now : 0;
        timeval time = {};
        time.tv_sec = static_cast<time_t>(left / DIBS_SECOND);
        time.tv_usec = static_cast<suseconds_t>(left % DIBS_SECOND / 1000);
        if (time.tv_sec == 0 && time.tv_usec == 0) time.tv_usec = 1;  // zero is for ever
        setsockopt(socket, SOL_SOCKET, limit, &time, sizeof time);
        const auto result = call();
        if (result >= 0 || errno != EINTR) return result;
        if (left == 0) {
            errno = EAGAIN;
            return result;
        }
    }
}

}  // namespace dibs::client
