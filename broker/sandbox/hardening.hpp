// broker/sandbox/hardening.hpp -- sandboxes the broker, to limit what a hostile client can gain.
//
//   no new privileges   no process that it starts has more rights
//   not dumpable        no core file with its clients' payloads; its uid cannot trace it, or copy
//                       its descriptors
//   Landlock            files: reads its configuration, /etc, /proc, libraries and control groups;
//                       writes the socket's and the state folder; executes its own program; no TCP
//   system calls        those that the broker, and a keeper that it may have to start, make; no
//                       sockets but UNIX ones, no new namespaces
//
// A measure that the kernel cannot give is left out, with the reason, and the broker serves without
// it. A keeper that a hardened broker starts inherits all of them, and so do that keeper's brokers.
//
// A system call that is not on the list fails as on a kernel without it (ENOSYS): a libc that
// prefers a newer call then takes its second way. "strict" kills the process instead, so that a
// test cannot overlook it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <vector>

namespace dibs {

enum class HardeningMode : uint8_t { kOff, kOn, kStrict };

struct HardeningPlan {
    HardeningMode mode = HardeningMode::kOn;
    // Of the file system; what is not there is passed over.
    std::vector<std::string> readable = {};
    std::vector<std::string> writable = {};
    std::vector<std::string> executable = {};
};

// What is in force and what is not, as text.
struct Hardening {
    std::vector<std::string> had;
    std::vector<std::string> missing;  // with the reason

    // "no new privileges, not dumpable; missing: Landlock (…)"
    [[nodiscard]] std::string text() const;
};

// Of a broker whose configuration and socket lie there.
HardeningPlan hardening_plan(HardeningMode mode,
                             const std::string& config_file,
                             const std::string& socket,
                             const std::string& state_folder);

// The system calls that are allowed, as the kernel takes them. To write them down takes longer than
// all the rest, and asks nothing of the plan but one word: a broker that waits for its time does it
// ahead.
struct SystemCalls {
    bool strict = false;
    bool logged = false;  // of each that is refused the kernel is to make a note
    std::vector<struct sock_filter> program = {};
    std::string wrong = {};  // if there is no program: why
};
SystemCalls write_down_system_calls(bool strict);

// For this thread and those that it starts: call it before other threads exist. `written` may be of
// another mode, or null: then they are written down here.
Hardening harden(const HardeningPlan& plan, const SystemCalls* written = nullptr);

// Its parts. Empty, or why it could not be had.
std::string restrict_files(const HardeningPlan& plan, std::string* what);
std::string restrict_system_calls(const SystemCalls& calls);

}  // namespace dibs
