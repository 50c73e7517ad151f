// benchmarks/valgrind_epoll.c -- epoll_pwait2 for a dibsd under valgrind 3.19, which does not know
// that system call: preloaded, it waits by milliseconds instead.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/epoll.h>
#include <time.h>

int epoll_pwait2(int epoll,
                 struct epoll_event* events,
                 int count,
                 const struct timespec* wait,
                 const sigset_t* signals) {
    int wait_ms = -1;
    if (wait != NULL) wait_ms = (int)(wait->tv_sec * 1000 + (wait->tv_nsec + 999999) / 1000000);
    return epoll_pwait(epoll, events, count, wait_ms, signals);
}
