// broker/ctl/exec/grant.cpp -- makes a claim, and words each way in which it can end.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/grant.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "broker/config/quantity.hpp"
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/amounts.hpp"
#include "broker/ctl/exec/waiting.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/labels.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl::exec {

namespace {

// When a full pool has a slot again, its retry_after does not tell: that is of a full backlog.
std::string retry_hint(const dibs_completion& end) {
    if (end.retry_after_ns <= 0 || end.code == DIBS_EBUSY) return "";
    return "; worth trying again in " + duration_text(static_cast<uint64_t>(end.retry_after_ns));
}

std::string units_hint(const Attachment& attachment, uint32_t pool) {
    dibs_counters counters = {};
    counters.size = sizeof counters;
    if (dibs_snapshot(attachment.session(), pool, &counters) != DIBS_OK) return "";
    return "; the pool has " + std::to_string(counters.slots) + " and gives one claim at most " +
           std::to_string(attachment.describe(pool).units_max);
}

// Every user has an account of its own where the configuration has a template of one, as long as
// there is a row for it. Empty: there is one, or it has its account.
std::string accounts_hint(const Attachment& attachment, const Options& options) {
    const std::string own =
        options.account.empty() ? "uid:" + std::to_string(geteuid()) : options.account;
    dibs_share share = {};
    share.size = sizeof share;
    for (uint32_t place = 0;; ++place) {
        const int code = dibs_account_share(attachment.session(), place, &share);
        if (code == DIBS_EARGUMENT && place != 0) {
            return "; all " + std::to_string(place) + " accounts are in use, and " + own +
                   " is none of them (limits.accounts in dibsd's configuration)";
        }
        if (code != DIBS_OK || own == share.name) return "";
    }
}

// A user who waits at a terminal learns at once what a program learns at the end.
void tell_wait(const Attachment& attachment, uint32_t pool, const Options& options) {
    if (options.now || isatty(STDERR_FILENO) == 0) return;
    const std::string why = no_worker(attachment, pool, options);
    if (why.empty()) return;
    talk("dibs: waiting for " + wanted(options) + ": " + why);
}

// Of what a broker did not say: what the user asked for.
std::string not_allowed(const Options& options) {
    std::string what = "claim from this pool";
    std::string keys = "pools";
    if (options.priority != 0) {
        what += ", or not with priority " + std::to_string(options.priority);
        keys += ", priority_max";
    }
    if (!options.account.empty()) {
        what += ", or not for account \"" + options.account + "\", which administrators may";
    }
    return against_policy(what, keys);
}

// Beyond three quarters of a table, users who have little of it come first.
std::string of_share(const std::string& table, const std::string& what, uint32_t number) {
    return "three quarters of the broker's " + table +
           " are in use, and the rest is for users with fewer than " + std::to_string(number) +
           what + ": user " + user_name(geteuid()) + " has as many (limits." + table +
           " in dibsd's configuration)";
}

// Which key of the configuration refuses, and its number.
std::string against_rule(const dibs_completion& end, const Options& options) {
    const std::string number = std::to_string(end.refused_at);
    const std::string policy = "policy of user " + user_name(geteuid()) + ": ";
    switch (end.refused_by) {
        case DIBS_KEY_POOLS:
            return against_policy("claim from this pool", "pools");
        case DIBS_KEY_PRIORITY_MAX:
            return policy +
                   "priority_max = " + std::to_string(static_cast<int32_t>(end.refused_at)) +
                   ": the claim has priority " + std::to_string(options.priority);
        case DIBS_KEY_ACCOUNT:
            return against_policy(
                "have account \"" + options.account + "\" pay, which administrators may",
                "account");
        case DIBS_KEY_LEASES:
            return policy + "leases = " + number + ": " + number +
                   (end.refused_at == 1 ? " is" : " are") + " held or waited for already";
        case DIBS_KEY_BACKLOG:
            return policy + "backlog = " + number + ": " +
                   (end.refused_at == 1 ? "1 claim waits" : number + " claims wait") + " already";
        case DIBS_KEY_LABEL_SETS:
            return policy + "label_sets = " + number +
                   ": a claim with new labels needs one more than its claims, leases and slots";
        case DIBS_KEY_ARENA:
            return policy + "arena = " + number +
                   ": its payloads and attributes leave fewer bytes than the claim brings";
        case DIBS_KEY_CLAIM_SHARE:
            return of_share("claims", "", end.refused_at);
        case DIBS_KEY_LEASE_SHARE:
            return of_share("leases", "", end.refused_at);
        case DIBS_KEY_SLOT_SHARE:
            return of_share("slots", "", end.refused_at);
        case DIBS_KEY_LABEL_SHARE:
            return of_share("label_sets", "", end.refused_at);
        case DIBS_KEY_PAYLOAD_SHARE:
            return of_share("arena", " blocks", end.refused_at);
        case DIBS_KEY_ORDER:
            return "it is a counted pool that is not ordered by account, where nobody reads "
                   "labels: order = "
                   "\"account\" in its [[pool]] matches them, and workers (kind = \"worker\") are "
                   "handed them";
        case DIBS_KEY_DOWN_PAYLOAD:
            return "the claim needs " + number +
                   " bytes of the session for its slots and answers: attributes_max and answer_max "
                   "of the pool are too large for so many units";
        default:
            return end.code == DIBS_ENOTALLOWED ? not_allowed(options) : dibs_strerror(end.code);
    }
}

std::string why_busy(const dibs_completion& end, const Options& options) {
    const bool lacks = end.code == DIBS_EBUSY && !options.least.empty();
    return lacks ? "no slot has as much free, or others come first, and the claim does not wait"
                 : dibs_strerror(end.code);
}

// The pool as the broker has it; null: it does not say.
std::unique_ptr<admin::PoolT> pool_row(const Options& options) {
    try {
        AdminClient client(options.socket, answer_timeout_ns(options));
        auto rows = client.pools(options.pool.name);
        return rows.empty() ? nullptr : std::move(rows.front());
    } catch (const Failure&) {
        return nullptr;
    }
}

// Which of it is more than a slot has.
std::string too_little(const Options& options) {
    const std::unique_ptr<admin::PoolT> pool = pool_row(options);
    for (const std::string& wanted : options.least) {
        const size_t equals = wanted.find('=');
        const std::string name = wanted.substr(0, equals);
        const uint64_t amount = parse_size(wanted.substr(equals + 1)).value_or(0);
        for (size_t at = 0; pool != nullptr && at < pool->resources.size(); ++at) {
            if (pool->resources[at] != name || amount <= pool->capacity[at]) continue;
            return "it wants " + show_amount(amount) + " of " + name +
                   ", and a slot of the pool has " + show_amount(pool->capacity[at]);
        }
    }
    return dibs_strerror(DIBS_EUNAVAILABLE);
}

std::string no_vector(const Options& options) {
    const std::unique_ptr<admin::PoolT> pool = pool_row(options);
    const std::string why =
        pool == nullptr ? "" : no_part(pool->resources, options.least, options.most);
    return why.empty() ? dibs_strerror(DIBS_EVECTOR) : why;
}

// Empty: it is not the whole broker.
std::string broker_drains(AdminClient& client) {
    admin::RequestT request;
    request.ask = admin::Ask::status;
    const admin::AnswerT answer = client.must(request, "");
    if (answer.status != nullptr && answer.status->stopping) {
        return "the broker is about to stop, and takes no new claims";
    }
    if (answer.status != nullptr && answer.status->draining) {
        return "the whole broker drains and takes no new claims; dibs undrain --all ends that";
    }
    return "";
}

// What keeps each of its pools out.
std::string set_drains(const Options& options) {
    std::string text;
    try {
        AdminClient client(options.socket, answer_timeout_ns(options));
        if (auto all = broker_drains(client); !all.empty()) return all;
        for (const auto& set : client.sets()) {
            if (set->name != options.pool.name) continue;
            for (size_t at = 0; at < std::min(set->pools.size(), set->left_out.size()); ++at) {
                if (set->left_out[at].empty()) continue;
                text += (text.empty() ? "" : ", ") + set->pools[at] + " " + set->left_out[at];
            }
        }
    } catch (const Failure&) {  // then it is not known
    }
    return "it is a set, and none of its pools takes claims" + (text.empty() ? "" : ": " + text);
}

Failure not_granted(const Awaited& awaited,
                    const Options& asked,
                    const Attachment& attachment,
                    uint32_t pool) {
    const dibs_completion& end = awaited.end;
    std::string start = "did not get " + wanted(asked) + ": ";
    Options options = asked;
    if (end.code == DIBS_ESTATE && !options.also.empty()) {
        return {kExitUsage,
                start +
                    "one of these pools takes no claims over several: each must be in order of "
                    "arrival, of cooperative expiry and without resources"};
    }
    if ((pool & DIBS_POOL_SET) != 0) {  // what follows is of the member that has said so
        if (end.code == DIBS_EPOOL) return {kExitNotFound, start + "none of its pools is there"};
        if (end.code == DIBS_EDRAINING) {
            return {options.conflict_exit.value_or(kExitNoneFree), start + set_drains(asked)};
        }
        pool = end.pool;
        options.pool.name = attachment.describe(pool).name;
        if (end.outcome == DIBS_REJECTED) start += "pool \"" + options.pool.name + "\": ";
    }
    const std::string none =
        awaited.unfit.empty() ? no_worker(attachment, pool, options) : awaited.unfit;
    const std::string who = none.empty() ? shown_holder(end.holder) : "; " + none;
    if (end.outcome == DIBS_BROKER_LOST) {
        const bool empty = end.code == DIBS_ESTATELOST;  // another one serves
        return {kExitUnreachable,
                start + (empty ? dibs_strerror(end.code) : "the broker has gone away")};
    }
    if (end.outcome == DIBS_EXPIRED && options.now) {
        return {options.conflict_exit.value_or(kExitNoneFree),
                start + "the broker did not answer at once" + who};
    }
    if (end.outcome == DIBS_EXPIRED) {
        return {options.conflict_exit.value_or(kExitDeadline),
                start + "the time of " + duration_text(static_cast<uint64_t>(options.timeout_ns)) +
                    " has passed" + who};
    }
    if (end.outcome == DIBS_CANCELLED && end.code == DIBS_EREVOKED) {
        return {kExitOwnFailure, start + "the claim was cancelled from outside (dibs cancel)"};
    }
    if (end.code == DIBS_EREFUSED) {
        return {options.conflict_exit.value_or(kExitNoneFree),
                start + "its worker refused with code " + std::to_string(end.worker_code)};
    }
    if (end.code == DIBS_EDRAINING) {
        return {options.conflict_exit.value_or(kExitNoneFree), start + what_drains(options)};
    }
    if (end.code == DIBS_EUNITS) {
        return {kExitLimit, start + "too many at once" + units_hint(attachment, pool)};
    }
    if (end.code == DIBS_EUNAVAILABLE) return {kExitLimit, start + too_little(options)};
    if (end.code == DIBS_EVECTOR) return {kExitUsage, start + no_vector(options)};
    if (end.code == DIBS_ENOTALLOWED || end.refused_by != 0) {
        return {exit_code_of(end.code), start + against_rule(end, options)};
    }
    const std::string full = end.code == DIBS_ETABLES ? accounts_hint(attachment, options) : "";
    const int code = exit_code_of(end.code);
    return {code == kExitNoneFree ? options.conflict_exit.value_or(code) : code,
            start + why_busy(end, options) + full +
                (end.code == DIBS_EBUSY ? who : shown_holder(end.holder)) + retry_hint(end)};
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

// The broker itself is asked: what it publishes may be behind. Where that fails it may have stopped
// by now, or too many ask.
std::string what_drains(const Options& options) {
    try {
        AdminClient client(options.socket, answer_timeout_ns(options));
        if (auto all = broker_drains(client); !all.empty()) return all;
        const auto rows = client.pools(options.pool.name);
        if (!rows.empty() && rows.front()->leaving) {
            return "the pool is not in the broker's configuration any more, and takes no new "
                   "claims";
        }
        if (!rows.empty() && rows.front()->draining) {
            return "the pool drains and takes no new claims; dibs undrain " + options.pool.name +
                   " ends that";
        }
    } catch (const Failure&) {
        return "the pool drains or the broker, and takes no new claims";
    }
    return "it drained, and drains no more: try again";
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
