// broker/ctl/exec/refusal.cpp -- words each way in which a claim can end without a lease.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/refusal.hpp"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/config/quantity.hpp"
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/amounts.hpp"
#include "broker/ctl/exec/grant.hpp"
#include "broker/ctl/exec/waiting.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/output/who.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl::exec {

namespace {

// When a full pool has a slot again, its retry_after does not tell: that is of a full backlog.
std::string retry_hint(const dibs_completion& end) {
    if (end.retry_after_ns <= 0 || end.code == DIBS_EBUSY) return "";
    return "; worth trying again in " + duration_text(static_cast<uint64_t>(end.retry_after_ns));
}

// Of the pool in which the claim wants so many: over several, the first one that has fewer.
std::string units_hint(const Attachment& attachment, uint32_t pool, const Options& options) {
    std::string the_pool = "the pool";
    dibs_counters counters = {};
    counters.size = sizeof counters;
    std::vector<PoolOperand> wanted = options.also;
    wanted.insert(wanted.begin(), options.pool);
    for (const PoolOperand& one : wanted) {
        if (wanted.size() > 1) {
            pool = attachment.pool(one.name);
            the_pool = "pool \"" + one.name + "\"";
        }
        if (dibs_snapshot(attachment.session(), pool, &counters) != DIBS_OK) return "";
        const dibs_pool_limits limits = attachment.describe(pool);
        const bool has_slots = limits.has_workers != 0 || one.count <= counters.slots;
        if (one.count > limits.units_max || !has_slots) break;
    }
    return "; " + the_pool + " has " + std::to_string(counters.slots) +
           " and gives one claim at most " + std::to_string(attachment.describe(pool).units_max);
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
        case DIBS_KEY_TASK_SHARE:
            return "half of the broker's tasks of applications are in use, and user " +
                   user_name(geteuid()) + " has a quarter of all (" + number +
                   ") or more: remove applications or tasks that have ended (dibs app remove), or "
                   "raise limits.tasks in dibsd's configuration";
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

std::string application_text(const Options& options) {
    return "application \"" + options.application + "\"";
}

std::string task_text(const Options& options) {
    return "task \"" + options.task + "\" of " + application_text(options);
}

// One's own; null: it is not there, or the broker does not say.
std::unique_ptr<admin::ApplicationT> application_row(const Options& options) {
    try {
        AdminClient client(options.socket, answer_timeout_ns(options));
        auto rows = client.applications(options.application, geteuid());
        return rows.empty() ? nullptr : std::move(rows.front());
    } catch (const Failure&) {
        return nullptr;
    }
}

// " (failed, too-many-units)"
std::string how_ended(const Options& options) {
    const auto row = application_row(options);
    if (row == nullptr) return "";
    const bool has_reason = row->reason != DIBS_OK;
    return " (" + row->state +
           (has_reason ? std::string(", ") + dibs_reason_name(row->reason) : "") + ")";
}

// Why its application, or the task, lets it have nothing; empty: that is not why.
std::string against_application(const dibs_completion& end, const Options& options) {
    const std::string app = application_text(options);
    const std::string task = task_text(options);
    switch (end.code) {
        case DIBS_ENOTFOUND:
            return "there is no " + app + " of yours" +
                   (options.group.empty() ? "" : ", or it has no group \"" + options.group + "\"") +
                   "; dibs app ls shows those that are, dibs app add makes one";
        case DIBS_EAPPLICATION:
            return app + " has ended" + how_ended(options) + ": remove it with dibs app remove " +
                   options.application + ", or choose another name";
        case DIBS_EENDED:
            return task + " has ended: choose another name, or forget it with dibs app remove " +
                   options.application + " " + options.task;
        case DIBS_EDUPLICATE:
            return task + " is there already, as claim " +
                   number_text(Letter::kClaim, end.holder.claim) + ": choose another name";
        case DIBS_ESTATE:
            return app + " is of another pool: dibs app show " + options.application +
                   " says which";
        default:
            return "";
    }
}

// Whose it is to say why: of a set, the member that has ended the claim.
struct Asked {
    Options options;     // as they were of that pool
    uint32_t pool = 0;   // of the claim, and of its end if that names one
    bool is_one = true;  // else nobody knows where it was taken
    std::string start;   // of what is said
};

// What is said of a claim over several pools, or of a set, as one.
std::optional<Failure> no_pool_of_several(const dibs_completion& end,
                                          const Options& options,
                                          const Asked& asked) {
    if (end.code == DIBS_ESTATE && !options.also.empty()) {
        return Failure(kExitUsage,
                       asked.start +
                           "one of these pools takes no claims over several: each must be in order "
                           "of arrival, of cooperative expiry and without resources");
    }
    if ((asked.pool & DIBS_POOL_SET) == 0) return std::nullopt;
    if (end.code == DIBS_EPOOL) {
        return Failure(kExitNotFound, asked.start + "none of its pools is there");
    }
    if (end.code != DIBS_EDRAINING) return std::nullopt;
    return Failure(options.conflict_exit.value_or(kExitNoneFree),
                   asked.start + set_drains(options));
}

void name_member(const dibs_completion& end, const Attachment& attachment, Asked* asked) {
    const uint32_t asked_of = asked->pool;
    if ((asked_of & DIBS_POOL_SET) != 0) asked->pool = end.pool;
    asked->is_one = (asked->pool & DIBS_POOL_SET) == 0;
    if (!asked->is_one || asked->pool == asked_of) return;
    asked->options.pool.name = attachment.describe(asked->pool).name;
    if (end.outcome == DIBS_REJECTED) {
        asked->start += "pool \"" + asked->options.pool.name + "\": ";
    }
}

// Where nobody has judged the claim. `who` has what it wants.
std::optional<Failure> not_judged(const dibs_completion& end,
                                  const Asked& asked,
                                  const std::string& who) {
    const Options& options = asked.options;
    if (end.outcome == DIBS_BROKER_LOST) {
        const bool empty = end.code == DIBS_ESTATELOST;  // another one serves
        return Failure(
            kExitUnreachable,
            asked.start + (empty ? dibs_strerror(end.code) : "the broker has gone away"));
    }
    if (end.outcome == DIBS_EXPIRED && options.now) {
        return Failure(options.conflict_exit.value_or(kExitNoneFree),
                       asked.start + "the broker did not answer at once" + who);
    }
    if (end.outcome == DIBS_EXPIRED) {
        return Failure(options.conflict_exit.value_or(kExitDeadline),
                       asked.start + "the time of " +
                           duration_text(static_cast<uint64_t>(options.timeout_ns)) +
                           " has passed" + who);
    }
    if (end.outcome == DIBS_CANCELLED && end.code == DIBS_OK && !options.application.empty()) {
        return Failure(
            kExitOwnFailure,
            asked.start + task_text(options) + " was completed from outside (dibs app complete)");
    }
    if (end.outcome == DIBS_CANCELLED && end.code == DIBS_EREVOKED) {
        return Failure(kExitOwnFailure,
                       asked.start + "the claim was cancelled from outside (dibs cancel)");
    }
    return std::nullopt;
}

// Where the claim can be served by no pool, or not by this one now.
std::optional<Failure> refused(const dibs_completion& end,
                               const Asked& asked,
                               const Attachment& attachment) {
    const Options& options = asked.options;
    const std::string& start = asked.start;
    const std::string apart = options.application.empty() ? "" : against_application(end, options);
    if (!apart.empty()) {
        return Failure(end.code == DIBS_ENOTFOUND ? kExitNotFound : kExitLimit, start + apart);
    }
    switch (end.code) {
        case DIBS_EREFUSED:
            return Failure(
                options.conflict_exit.value_or(kExitNoneFree),
                start + "its worker refused with code " + std::to_string(end.worker_code));
        case DIBS_EDRAINING:
            return Failure(options.conflict_exit.value_or(kExitNoneFree),
                           start + what_drains(options));
        case DIBS_EUNITS:
            return Failure(
                kExitLimit,
                start + "too many at once" + units_hint(attachment, asked.pool, options));
        case DIBS_EUNAVAILABLE:
            return Failure(kExitLimit, start + too_little(options));
        case DIBS_EVECTOR:
            return Failure(kExitUsage, start + no_vector(options));
        default:
            break;
    }
    if (end.code != DIBS_ENOTALLOWED && end.refused_by == 0) return std::nullopt;
    return Failure(exit_code_of(end.code), start + against_rule(end, options));
}

}  // namespace

// The broker itself is asked: what it publishes may be behind. Where that fails it may have stopped
// by now, or too many ask.
std::string what_drains(const Options& options) {
    try {
        AdminClient client(options.socket, answer_timeout_ns(options));
        if (auto all = broker_drains(client); !all.empty()) return all;
        std::vector<PoolOperand> pools = options.also;
        pools.insert(pools.begin(), options.pool);
        for (const PoolOperand& pool : pools) {
            const std::string the_pool =
                pools.size() == 1 ? "the pool" : "pool \"" + pool.name + "\"";
            const auto rows = client.pools(pool.name);
            if (!rows.empty() && rows.front()->leaving) {
                return the_pool +
                       " is not in the broker's configuration any more, and takes no "
                       "new claims";
            }
            if (!rows.empty() && rows.front()->draining) {
                return the_pool + " drains and takes no new claims; dibs undrain " + pool.name +
                       " ends that";
            }
        }
    } catch (const Failure&) {
        return "the pool drains or the broker, and takes no new claims";
    }
    return "it drained, and drains no more: try again";
}

Failure not_granted(const Awaited& awaited,
                    const Options& options,
                    const Attachment& attachment,
                    uint32_t asked_of) {
    const dibs_completion& end = awaited.end;
    Asked asked{
        .options = options, .pool = asked_of, .start = "did not get " + wanted(options) + ": "};
    if (auto failure = no_pool_of_several(end, options, asked)) return *failure;
    name_member(end, attachment, &asked);
    const std::string none = asked.is_one && awaited.unfit.empty()
                                 ? no_worker(attachment, asked.pool, asked.options)
                                 : awaited.unfit;
    const std::string who = none.empty() ? shown_holder(end.holder) : "; " + none;
    if (auto failure = not_judged(end, asked, who)) return *failure;
    if (auto failure = refused(end, asked, attachment)) return *failure;
    const std::string full = end.code == DIBS_ETABLES ? accounts_hint(attachment, options) : "";
    const int code = exit_code_of(end.code);
    return {code == kExitNoneFree ? options.conflict_exit.value_or(code) : code,
            asked.start + why_busy(end, options) + full +
                (end.code == DIBS_EBUSY ? who : shown_holder(end.holder)) + retry_hint(end)};
}

}  // namespace dibs::ctl::exec
