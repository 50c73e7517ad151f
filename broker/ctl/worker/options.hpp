// broker/ctl/worker/options.hpp -- the options of `dibs worker`, and of a type of `dibs-runner`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/ctl/attachment.hpp"

namespace dibs::ctl::worker {

// What the command reads and writes on its standard streams.
enum class Lines : uint8_t {
    kAnswer,  // a line per use in, a line out: the answer, which ends the use
    kHold,    // a line in, a line out for the holder; a line at the release, a line when clean
    kNone     // nothing
};

// What becomes of the processes that a use has started and not ended.
enum class Leftovers : uint8_t { kEndIfPossible, kEnd, kKeep };

// Another user than this process's, as whom the command runs.
struct OtherUser {
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups = {};
    std::string name = {};
    std::string home = {};
};

struct Options {
    std::string speaker = "dibs worker";  // in messages
    // Of a service: output goes to the log, and what cannot be had is tried again.
    bool service = false;
    PoolOperand pool;
    std::string socket;
    Lines lines = Lines::kAnswer;
    std::string ready_line;  // text in a line that says ready; empty: none
    bool notify = false;     // ready by sd_notify(3)
    bool session = false;    // the process announces its slot itself, with the order
    int64_t ready_timeout_ns = 30 * DIBS_SECOND;
    std::string type;  // of an elastic pool: a process runs for each order; empty: all the time
    std::string name;  // of the slots, "-0" and so on behind it
    std::vector<std::string> labels;
    std::vector<std::pair<std::string, std::string>> attributes;
    std::vector<std::string> resources;  // NAME=AMOUNT; empty: what the pool says
    uint32_t parts = 0;                  // at a time; 0: only whole slots are leased
    uint64_t uses_max = 0;               // 0: no limit
    int64_t age_max_ns = 0;              // 0: no limit
    int64_t use_max_ns = 0;              // 0: no limit
    Leftovers leftovers = Leftovers::kEndIfPossible;
    std::string between;                 // a shell command after each use
    int64_t grace_ns = 5 * DIBS_SECOND;  // for a revoked use, and between TERM and KILL
    int64_t backoff_ns = 100 * DIBS_MILLISECOND;
    int64_t backoff_max_ns = 30 * DIBS_SECOND;
    uint64_t tries_max = 0;  // starts in a row that may fail; 0: no limit
    int64_t drain_ns = 30 * DIBS_SECOND;
    uint64_t line_max = 65'536;
    std::vector<std::string> command;
    std::string program;                   // the file of command[0]
    std::vector<std::string> environment;  // "NAME=value", beside what is inherited
    std::string folder;                    // where it starts; empty: in this process's
    std::optional<OtherUser> user;
    uint64_t memory_max = 0;    // bytes of a process and what it starts; 0: no limit
    uint64_t cpu_max_us = 0;    // of a CPU, in each 100 ms; 0: no limit
    bool others_serve = false;  // the pool has other types here, which are asked at this one's most
};

}  // namespace dibs::ctl::worker
