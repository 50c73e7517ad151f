// broker/takeover/head_start.hpp -- prepares a standby broker before it takes over.
//
// Until its link speaks, a standby has no part in the service: it has no message from its keeper
// and has opened nothing. A signal that would stop a broker ends it, and so does the end of its
// keeper, even where the standby is stopped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace dibs {

// A process's private memory, resident. 0: that cannot be read, by a restricted process for
// instance.
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

// Gives unused memory of malloc() back to the kernel. From any thread.
void give_back_memory();

// How ps(1) and top(1) call this process: 15 letters.
void name_process(const char* name);

// Whether this process is killed when the one that started it ends: until its link has spoken.
void end_with_keeper(bool end);

// Waits until `link` has a message. False: the other end is gone, or a signal that the caller has
// blocked has come. A signal that comes when the message is there already, though still unread,
// stays for the broker.
[[nodiscard]] bool await_begin(int link);

}  // namespace dibs
