// broker/ctl/exec/waiting.cpp -- calls dibs_claim in steps of a second.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/waiting.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/output/who.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl::exec {

namespace {

// As dibs_claim has it: the broker is given so long to say that the time has passed.
constexpr int64_t kLate = 20 * DIBS_MILLISECOND;

std::string place_of(const dibs_explanation& why) {
    if (why.position == 0) return "its workers are being asked";
    return "place " + std::to_string(why.position) + " of " + std::to_string(why.waiting);
}

// The slot that it waits for may be its own caller's.
std::string ancestor(const Options& options) {
    const char* pool = std::getenv("DIBS_POOL");
    const char* lease = std::getenv("DIBS_LEASE");
    if (pool == nullptr || lease == nullptr || options.pool.name != pool) return "";
    return "; it runs under a slot of this pool itself (lease " + harmless(lease) + ")";
}

// What is true of the claim however long it waits.
std::string unfit_for(const dibs_explanation& why) {
    if (why.reason != DIBS_WAIT_LABELS) return "";
    return std::string("no slot has the label \"") + harmless(why.label) + "\"";
}

std::string wanted_of(const PoolOperand& asked) {
    const std::string pool = " of pool \"" + asked.name + "\"";
    return asked.count == 1 ? "a slot" + pool : std::to_string(asked.count) + " slots" + pool;
}

constexpr size_t kColumns = 79;  // of a terminal that does not say how many it has

// Its first characters, and that there are more.
std::string shortened(const std::string& text, size_t columns) {
    std::string start;
    for (const char c : text) {
        const bool begins = (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
        if (begins && width_of(start) == columns - 1 && width_of(text) > columns) {
            return start + "~";
        }
        start += c;
    }
    return start;
}

std::string short_holder(const dibs_holder& holder, size_t name) {
    std::string who = "another user's process";
    if (holder.claim != DIBS_HIDDEN_CLAIM) {
        const std::string command = harmless(command_name(holder.pid));
        who = std::to_string(holder.pid) +
              (command.empty() ? "" : " (" + shortened(command, name) + ")") + " of " +
              shortened(harmless(user_name(holder.uid)), name);
    } else if (holder.uid != DIBS_HIDDEN_UID) {
        who = "a process of " + shortened(harmless(user_name(holder.uid)), name);
    }
    return who + " has held one " +
           duration_text(static_cast<uint64_t>(std::max<int64_t>(holder.age_ns, 0)));
}

class Waiting {
  public:
    Waiting(const Attachment& attachment, uint32_t pool, const Options& options)
        : attachment_(attachment), pool_(pool), options_(options) {}

    // Asks why, where that is said: at a terminal, once with -v, or at the end if no label fits.
    void look(uint64_t ticket) {
        if (!at_terminal_ && !options_.verbose && options_.labels.empty()) return;
        dibs_explanation why = {};
        why.size = sizeof why;
        if (dibs_explain(attachment_.session(), ticket, &why) != DIBS_OK) return;
        unfit_ = unfit_for(why);
        if (monotonic_ns() - begun_ns_ < DIBS_SECOND) return;
        if (at_terminal_) {
            talk_over(line(why));
        } else if (options_.verbose && !std::exchange(told_, true)) {
            talk(sentence(why));
        }
    }
    void end() const {
        if (at_terminal_) talk_over("");
    }
    [[nodiscard]] int64_t begun_ns() const { return begun_ns_; }
    [[nodiscard]] bool renews() const { return at_terminal_; }
    [[nodiscard]] const std::string& unfit() const { return unfit_; }

  private:
    [[nodiscard]] std::string sentence(const dibs_explanation& why) const {
        const std::string none = no_worker(attachment_, pool_, options_);
        std::string what = unfit_.empty() ? none : unfit_;
        what = what.empty() ? shown_holder(why.holder) : "; " + what;
        const std::string own = ancestor(options_);
        return "dibs: waiting for " + wanted(options_) + ", " + place_of(why) +
               (own.empty() ? what : own);
    }

    // The sentence where it fits, else a shorter one, with names as long as there is room.
    [[nodiscard]] std::string line(const dibs_explanation& why) const {
        const size_t columns = columns_of(STDERR_FILENO);
        const size_t most = columns > 1 ? columns - 1 : kColumns;
        std::string text = sentence(why);
        for (size_t name = DIBS_NAME_MAX; width_of(text) > most && name >= kNameLeast; --name)
            text = short_sentence(why, name);
        return text;
    }

    [[nodiscard]] std::string short_sentence(const dibs_explanation& why, size_t name) const {
        const std::string count =
            options_.pool.count == 1 ? "" : std::to_string(options_.pool.count) + " of ";
        std::string text = "dibs: waiting for " + count + shortened(options_.pool.name, name);
        if (why.position != 0) {
            text += ", " + std::to_string(why.position) + " of " + std::to_string(why.waiting);
        }
        text += "; ";
        if (!ancestor(options_).empty()) return text + "it runs under a slot of this pool itself";
        if (why.reason == DIBS_WAIT_LABELS) {
            return text + "no slot has the label \"" + shortened(harmless(why.label), name) + "\"";
        }
        const std::string none = no_worker(attachment_, pool_, options_);
        if (!none.empty()) return text + none.substr(0, none.find(" ("));
        if (why.holder.claim != 0) return text + short_holder(why.holder, name);
        return text + (why.position == 0 ? "its workers are being asked" : "it is not its turn");
    }

    static constexpr size_t kNameLeast = 3;

    const Attachment& attachment_;
    uint32_t pool_;
    const Options& options_;
    const bool at_terminal_ = isatty(STDERR_FILENO) != 0;
    const int64_t begun_ns_ = monotonic_ns();
    bool told_ = false;
    std::string unfit_;
};

}  // namespace

std::string shown_process(const dibs_holder& holder) {
    if (holder.claim == DIBS_HIDDEN_CLAIM) {
        return holder.uid == DIBS_HIDDEN_UID
                   ? "another user's process"
                   : "a process of user " + harmless(user_name(holder.uid));
    }
    return process_text(holder.pid, command_name(holder.pid), holder.uid);
}

std::string shown_holder(const dibs_holder& holder) {
    if (holder.claim == 0) return "";
    return "; " + shown_process(holder) + " has held one for " +
           duration_text(static_cast<uint64_t>(std::max<int64_t>(holder.age_ns, 0)));
}

std::string wanted(const Options& options) {
    std::string text = wanted_of(options.pool);
    for (size_t at = 0; at < options.also.size(); ++at)
        text += (at + 1 < options.also.size() ? ", " : " and ") + wanted_of(options.also[at]);
    return text;
}

std::string no_worker(const Attachment& attachment, uint32_t pool, const Options& options) {
    dibs_counters counters = {};
    counters.size = sizeof counters;
    if ((pool & DIBS_POOL_SET) != 0) return "";
    if (attachment.describe(pool).has_workers == 0 ||
        dibs_snapshot(attachment.session(), pool, &counters) != DIBS_OK) {
        return "";
    }
    if (counters.slots == 0) {
        return "no worker offers one (dibs worker " + options.pool.name + " -- COMMAND does)";
    }
    const uint32_t out = counters.recovering + counters.unknown;
    return counters.slots == out ? "no worker is ready" : "";
}

Awaited await_claim(const Attachment& attachment,
                    uint32_t pool,
                    const Options& options,
                    const dibs_claim_options& asked) {
    Awaited awaited = {};
    // In as many backlogs as the set has pools: no place, and no single holder.
    if ((pool & DIBS_POOL_SET) != 0) {
        if (!options.application.empty()) {
            throw Failure(kExitUsage,
                          "--app: a task has one pool, that of its application; \"" +
                              options.pool.name + "\" is a set of pools");
        }
        const int claimed = dibs_claim(attachment.session(), pool, &asked, &awaited.end);
        if (claimed == DIBS_OK) return awaited;
        throw Failure(exit_code_of(claimed),
                      "cannot claim " + wanted(options) + ": " + dibs_strerror(claimed));
    }
    dibs_op op = {};
    op.size = sizeof op;
    op.kind = DIBS_OP_CLAIM;
    op.pool = pool;
    op.claim = &asked;
    Waiting waiting(attachment, pool, options);
    const int code = dibs_submit(attachment.session(), &op, 1);
    if (code < 0) {
        throw Failure(exit_code_of(code),
                      "cannot claim " + wanted(options) + ": " + dibs_strerror(code));
    }
    const bool bounded = asked.timeout_ns != DIBS_FOREVER;
    const int64_t until_ns = bounded ? after(waiting.begun_ns(), asked.timeout_ns) : INT64_MAX;
    // The first look early enough to know, at the end of a short time, why nothing fitted.
    int64_t look_ns = after(waiting.begun_ns(), DIBS_SECOND);
    if (bounded && !options.labels.empty()) {
        look_ns = std::min(look_ns, after(waiting.begun_ns(), asked.timeout_ns / 2));
    }
    for (;;) {
        const int64_t now_ns = monotonic_ns();
        const int64_t end_ns = bounded ? after(until_ns, kLate) : INT64_MAX;
        const int64_t next_ns = std::min(look_ns, end_ns);
        const int64_t wait_ns =
            next_ns == INT64_MAX ? DIBS_FOREVER : std::max<int64_t>(next_ns - now_ns, 0);
        const int count = dibs_reap(attachment.session(), &awaited.end, 1, wait_ns);
        if (count < 0) {
            waiting.end();
            throw Failure(exit_code_of(count),
                          "cannot claim " + wanted(options) + ": " + dibs_strerror(count));
        }
        if (count == 1 && awaited.end.kind == DIBS_CLAIM_ENDED) break;
        if (count == 1) continue;
        if (monotonic_ns() >= end_ns) {  // the broker says nothing: the claim ends with the session
            awaited.end = {};
            awaited.end.outcome = DIBS_EXPIRED;
            awaited.end.code = DIBS_ETIMEDOUT;
            break;
        }
        waiting.look(op.ticket);
        const bool again =
            waiting.renews() || monotonic_ns() < after(waiting.begun_ns(), DIBS_SECOND);
        look_ns = again ? after(monotonic_ns(), DIBS_SECOND) : INT64_MAX;
    }
    waiting.end();
    awaited.unfit = waiting.unfit();
    return awaited;
}

}  // namespace dibs::ctl::exec
