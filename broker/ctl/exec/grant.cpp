// broker/ctl/exec/grant.cpp -- makes a claim, and reads its terms.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/grant.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "broker/config/quantity.hpp"
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/amounts.hpp"
#include "broker/ctl/exec/refusal.hpp"
#include "broker/ctl/exec/waiting.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/labels.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl::exec {

namespace {

// A user who waits at a terminal learns at once what a program learns at the end.
void tell_wait(const Attachment& attachment, uint32_t pool, const Options& options) {
    if (options.now || isatty(STDERR_FILENO) == 0) return;
    const std::string why = no_worker(attachment, pool, options);
    if (why.empty()) return;
    talk("dibs: waiting for " + wanted(options) + ": " + why);
}

// Without either option, the pool's configuration decides whether to wait.
int32_t when_busy(const Options& options) {
    if (options.now) return DIBS_BUSY_REJECT;
    return options.timeout_ns != DIBS_FOREVER ? DIBS_BUSY_WAIT : DIBS_BUSY_AS_POOL;
}

// The broker serves an unconfigured account for free: a misspelt one would be charged nothing, and
// wait behind all others.
void check_account(const Attachment& attachment, const std::string& account) {
    if (account.empty() || account.starts_with("uid:")) return;
    const std::vector<std::string> known = attachment.accounts();
    if (!std::binary_search(known.begin(), known.end(), account)) {
        throw no_account(account, known);
    }
}

}  // namespace

int64_t answer_timeout_ns(const Options& options) {
    const int64_t asked_ns = options.now ? 0 : options.timeout_ns;
    return std::clamp<int64_t>(asked_ns, DIBS_SECOND, kAnswerTimeoutNs);
}

void read_preempt(const std::string& word, Options* options) {
    if (word.empty()) return;  // as the pool has it
    if (word == "never") {
        options->preempt = DIBS_PREEMPT_NEVER;
        return;
    }
    options->taken_told = true;
    options->preempt = DIBS_PREEMPT_AT_ONCE;
    if (word == "at-once") return;
    const auto grace = parse_duration(word);
    if (!grace || *grace > static_cast<uint64_t>(INT64_MAX)) {
        throw Failure(kExitUsage,
                      "--preempt " + word + ": write never, at-once, or a duration such as 10s");
    }
    options->preempt = DIBS_PREEMPT_GRACE;
    options->preempt_grace_ns = static_cast<int64_t>(*grace);
}

void check_terms(const Options& options, bool account_given) {
    check_labels("--label", options.labels);
    check_labels("--prefer", options.prefer);
    check_part(options.least, options.most);
    if (options.pool.count != 1 && !options.least.empty()) {
        throw Failure(kExitUsage,
                      "--want is for a part of one slot: write " + options.pool.name +
                          " without \":" + std::to_string(options.pool.count) + "\"");
    }
    const bool has_control = std::any_of(options.meta.begin(), options.meta.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (options.meta.size() > DIBS_META_MAX || has_control) {
        throw Failure(kExitUsage, "--meta: at most 255 bytes, none of them a control character");
    }
    if (account_given) check_name("--account", options.account);
    if (!options.also.empty() && !options.least.empty()) {
        throw Failure(kExitUsage, "--want is for a part of one slot of one pool");
    }
    check_count("--option", options.claim_options.size(), DIBS_OPTIONS_MAX);
}

dibs_completion claim(const Attachment& attachment, uint32_t pool, const Options& options) {
    check_account(attachment, options.account);
    std::vector<const char*> labels;
    for (const std::string& label : options.labels)
        labels.push_back(label.c_str());
    std::vector<const char*> prefer;
    for (const std::string& label : options.prefer)
        prefer.push_back(label.c_str());
    std::vector<const char*> least;
    for (const std::string& amount : options.least)
        least.push_back(amount.c_str());
    const std::vector<std::string> up_to = full_most(options.least, options.most);
    std::vector<const char*> most;
    for (const std::string& amount : up_to)
        most.push_back(amount.c_str());
    std::vector<dibs_option> pairs;
    for (const auto& [key, value] : options.claim_options)
        pairs.push_back({key.c_str(), value.c_str()});
    dibs_claim_options asked = {};
    asked.size = sizeof asked;
    asked.timeout_ns = options.now ? 0 : options.timeout_ns;
    asked.interval_ns = options.keepalive_ns;
    asked.units = options.pool.count;
    asked.when_busy = when_busy(options);
    asked.labels = labels.data();
    asked.label_count = labels.size();
    asked.prefer = prefer.data();
    asked.prefer_count = prefer.size();
    asked.least = least.data();
    asked.least_count = least.size();
    asked.most = most.data();
    asked.most_count = most.size();
    asked.priority = static_cast<int32_t>(options.priority);
    if (!options.account.empty()) asked.account = options.account.c_str();
    if (!options.meta.empty()) asked.meta = options.meta.c_str();
    if (!options.application.empty()) {
        asked.application = options.application.c_str();
        asked.task = options.task.c_str();
        if (!options.group.empty()) asked.group = options.group.c_str();
    }
    std::vector<dibs_pool_units> also;
    for (const PoolOperand& further : options.also)
        also.push_back({attachment.pool(further.name), further.count});
    asked.also = also.data();
    asked.also_count = also.size();
    asked.preempt = options.preempt;
    asked.preempt_grace_ns = options.preempt_grace_ns;
    asked.requeue = options.requeue ? 1 : 0;
    asked.body = options.body.data();
    asked.body_size = options.body.size();
    asked.options = pairs.data();
    asked.option_count = pairs.size();
    tell_wait(attachment, pool, options);
    const Awaited awaited = await_claim(attachment, pool, options, asked);
    if (awaited.end.outcome != DIBS_GRANTED) throw not_granted(awaited, options, attachment, pool);
    return awaited.end;
}

}  // namespace dibs::ctl::exec
