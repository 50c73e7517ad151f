// broker/takeover/head_start.hpp -- what a broker does that was started ahead of its time.
//
// It is a process without any part in the service, until its link speaks: no word of its keeper's
// has reached it, it has opened nothing. A signal that would stop a broker ends it, and so does the
// end of its keeper, even where somebody has stopped it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace dibs {

// Of a process: what it shares with nobody, in memory. 0: that is not to be known, to a restricted
// one for instance.
[[nodiscard]] uint64_t own_memory_kib(pid_t pid);

// Memory that was touched before it is needed: until this process has so much in all. While this
// lives, whatever is allocated comes from there, large blocks too; give_back_memory() sees to what
// is left of it. For one thread, and where malloc() is glibc's; elsewhere nothing.
class TouchedMemory {
  public:
    explicit TouchedMemory(uint64_t kib);
    ~TouchedMemory();
    TouchedMemory(const TouchedMemory&) = delete;
    TouchedMemory& operator=(const TouchedMemory&) = delete;
};

// What malloc() has and nobody uses goes back to the kernel. From any thread.
void give_back_memory();

// How ps(1) and top(1) call this process: 15 letters.
void name_process(const char* name);

// Whether this process is killed when the one that started it ends: until its link has spoken.
void end_with_keeper(bool end);

// Waits until `link` has a word for us. False: whoever was at its other end is gone, or a signal
// that the caller has blocked has come. One that comes when the word is there already, though
// nobody has seen it yet, stays for the broker.
[[nodiscard]] bool await_begin(int link);

}  // namespace dibs
