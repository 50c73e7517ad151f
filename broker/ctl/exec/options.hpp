// broker/ctl/exec/options.hpp -- the options of `dibs exec`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/config/quantity.hpp"
#include "broker/ctl/attachment.hpp"

namespace dibs::ctl {
class Arguments;
}

namespace dibs::ctl::exec {

// Whether all that the command starts is in a control group of its own.
enum class Tree { kIfPossible, kRequired, kNone };

struct Options {
    PoolOperand pool;
    std::vector<PoolOperand> also;  // further pools: a slot of each, or of none
    std::string socket;
    int64_t timeout_ns = DIBS_FOREVER;
    bool now = false;                    // or not at all
    int64_t keepalive_ns = 0;            // 0: the lease is bound to the command's life
    std::optional<int> conflict_exit;    // in place of 75 and 124
    int64_t grace_ns = 5 * DIBS_SECOND;  // between TERM and KILL for a command without its lease
    Tree tree = Tree::kIfPossible;
    bool run_on = false;  // a command whose lease has ended is left alone
    bool verbose = false;
    std::vector<std::pair<std::string, std::string>> variables;  // name, attribute
    std::vector<std::string> labels;
    std::vector<std::string> prefer;
    std::vector<std::string> least;  // NAME=AMOUNT
    std::vector<std::string> most;
    uint64_t priority = 0;
    std::string account;
    std::string meta;  // for who inspects
    // Of which task of which application, in which group.
    std::string application;
    std::string task;
    std::string group;
    int32_t preempt = DIBS_PREEMPT_AS_POOL;
    int64_t preempt_grace_ns = 0;
    bool requeue = false;     // taken, its claim waits again
    bool taken_told = false;  // the slot may be taken while the command runs, which is told
    std::vector<std::pair<std::string, std::string>> claim_options;
    std::string body;  // of dibs call
    std::vector<std::string> command;
    std::string program;  // the file of command[0]

    // The command needs no wrapper: its lease lasts as long as it does, and there is nothing to be
    // told in between.
    [[nodiscard]] bool outlives() const { return keepalive_ns == 0 && !taken_told; }
};

// For how long the broker may say nothing: a claim that does not wait for a slot does not wait for
// long for the broker, and none for much longer than for a slot.
int64_t answer_timeout_ns(const Options& options);
// "never", "at-once" or a grace, as --preempt has it; empty: not said. Failure (usage).
void read_preempt(const std::string& word, Options* options);
// Failure (usage): labels, options or an account's name that libdibs would not take.
// `account_given`: it may be empty by mistake.
void check_terms(const Options& options, bool account_given);
// --app, --task and --group; Failure (usage) of what they cannot be: given, they are not empty.
void add_member_options(Arguments* arguments, Options* options);
void check_member(const Options& options, const Arguments& arguments);
// --want and --up-to, which name a part of a slot.
void add_part_options(Arguments* arguments, Options* options);
inline constexpr const char* kPreemptAbout =
    "what a better claim may do to it: never (nothing), at-once, or a duration: it is told, and "
    "has "
    "so long";
inline constexpr const char* kPreferAbout =
    "a label that the slot should have; its worker is told which it lacks (repeatable)";
inline constexpr const char* kAccountAbout =
    "the account that pays, if not one's own; for the broker's administrators";
inline constexpr const char* kMetaAbout = "a text for who inspects the claim or its lease";
inline constexpr NumberRange kPriorities = {0, INT32_MAX};
inline constexpr const char* kPriorityAbout = "a priority that it brings, at most the policy's";

}  // namespace dibs::ctl::exec
