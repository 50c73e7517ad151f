// broker/ctl/exec/call.cpp -- `dibs call`: hands a body to a pool's worker and prints the answer.
//
// A claim with a body, the wait for the answer, and the end of the lease. A worker that answers and
// is done (dibs worker, as it is) ends the lease itself; one that answers with its confirmation
// (--lines hold) leaves that to the caller, which gives the slot back before it prints anything.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "broker/ctl/arguments.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/exec/grant.hpp"
#include "broker/ctl/exec/options.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {

namespace {

constexpr const char* kCallAbout =
    "Hands a body to a worker of a pool, waits for its answer and prints it on standard output. "
    "The worker may be a process of dibs worker, or any program that announces slots.";

constexpr const char* kCallFooter =
    "Example:\n"
    "  dibs worker web:1 -- ./handler &\n"
    "  dibs call web '{\"path\":\"/\"}' --timeout 10s\n\n"
    "Exit codes: 0 answered, 2 wrong usage, 3 no broker, 4 no such pool, 5 not allowed, 6 a limit, "
    "75 no slot free or its worker refused, 124 the timeout passed, 125 there is no answer.";

constexpr size_t kBodyMax = 64U << 10U;  // far above what any pool takes

// The writer may go on for ever.
std::string standard_input() {
    std::string body;
    char part[65536];
    for (;;) {
        const ssize_t size = ::read(STDIN_FILENO, part, sizeof part);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) {
            throw Failure(kExitFailed, std::string("standard input: ") + std::strerror(errno));
        }
        if (size == 0) return body;
        body.append(part, static_cast<size_t>(size));
        if (body.size() > kBodyMax) {
            throw Failure(kExitLimit,
                          "standard input is longer than 64 KiB, and no pool takes that");
        }
    }
}

void check_pool(const dibs_pool_limits& limits, const exec::Options& options) {
    if (limits.has_workers == 0) {
        throw Failure(kExitUsage,
                      "pool \"" + options.pool.name +
                          "\" is a counted pool, which has no workers: dibs exec uses its slots");
    }
    if (options.body.size() <= limits.payload_max) return;
    throw Failure(kExitLimit,
                  "the body has " + std::to_string(options.body.size()) + " bytes; pool \"" +
                      options.pool.name + "\" takes at most " + std::to_string(limits.payload_max) +
                      " (payload_max)");
}

std::optional<std::string> answer_of(const Attachment& attachment, const dibs_lease& lease) {
    const void* answer = nullptr;
    size_t size = 0;
    const int code = dibs_lease_answer(attachment.session(), &lease, 0, &answer, &size);
    if (code == DIBS_ENOVALUE) return std::nullopt;
    if (code < 0) throw Failure(kExitOwnFailure, std::string("no answer: ") + dibs_strerror(code));
    return std::string(static_cast<const char*>(answer), size);
}

// The lease has ended: with an answer, or without.
std::string last_answer(const Attachment& attachment, const dibs_completion& ended) {
    if (ended.code == DIBS_EDONE) return answer_of(attachment, ended.lease).value_or("");
    throw Failure(kExitOwnFailure,
                  std::string("its worker gave no answer: ") + dibs_strerror(ended.code));
}

std::string await_answer(const Attachment& attachment,
                         const dibs_completion& granted,
                         const exec::Options& options,
                         int64_t until_ns) {
    if (auto answer = answer_of(attachment, granted.lease)) {
        (void)dibs_release(attachment.session(), &granted.lease, DIBS_SECOND);
        return *std::move(answer);
    }
    for (;;) {
        const int64_t left_ns = until_ns == DIBS_FOREVER
                                    ? DIBS_FOREVER
                                    : std::max<int64_t>(until_ns - monotonic_ns(), DIBS_NOWAIT);
        dibs_completion one = {};
        const int count = dibs_reap(attachment.session(), &one, 1, left_ns);
        if (count < 0) {
            throw Failure(exit_code_of(count), std::string("no answer: ") + dibs_strerror(count));
        }
        if (count == 1 && one.kind == DIBS_LEASE_ENDED) return last_answer(attachment, one);
        if (count == 0 && left_ns == DIBS_NOWAIT) {
            throw Failure(kExitDeadline,
                          "a worker of pool \"" + options.pool.name +
                              "\" has not answered within " +
                              duration_text(static_cast<uint64_t>(options.timeout_ns)));
        }
    }
}

void print_answer(std::string answer) {
    if (!answer.ends_with('\n')) answer += '\n';
    for (size_t at = 0; at < answer.size();) {
        const ssize_t size = ::write(STDOUT_FILENO, answer.data() + at, answer.size() - at);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno == EPIPE) return;  // its reader has seen enough
        if (size < 0) throw Failure(kExitFailed, unwritten(errno));
        at += static_cast<size_t>(size);
    }
}

// Exit codes are those of dibs exec, 125 included.
int hand_over(exec::Options* options, std::string body) {
    try {
        const bool reads_input = std::string_view(body) == "-";
        options->body = reads_input ? standard_input() : std::move(body);
        const int64_t until_ns = options->timeout_ns == DIBS_FOREVER
                                     ? DIBS_FOREVER
                                     : after(monotonic_ns(), options->timeout_ns);
        const Attachment attachment(options->socket, small_session());
        const uint32_t pool = attachment.pool_or_set(options->pool.name);
        const bool is_set = (pool & DIBS_POOL_SET) != 0;
        if (!is_set) check_pool(attachment.describe(pool), *options);
        const dibs_completion granted = exec::claim(attachment, pool, *options);
        if (is_set) {  // which of them it would be, nobody knew
            options->pool.name = attachment.describe(granted.pool).name;
            check_pool(attachment.describe(granted.pool), *options);
        }
        print_answer(await_answer(attachment, granted, *options, until_ns));
        return kExitOk;
    } catch (const Failure& failure) {
        talk("dibs call: " + harmless(failure.what()));
        return failure.exit_code();
    }
}

}  // namespace

int run_call(int argc, char** argv) {
    exec::Options options;
    std::string pool;
    std::string body;
    Arguments arguments("call", kCallAbout);
    arguments.operand("POOL", &pool, "the pool's name, or a pool set's");
    arguments.operand("BODY", &body, "what the worker is handed; - is standard input");
    arguments.further(
        "it asks one worker; dibs exec POOL:N POOL:N -- COMMAND has slots of several pools");
    arguments.duration("-t,--timeout",
                       &options.timeout_ns,
                       "how long to wait for the slot and its answer; if not said, for the slot "
                       "as the pool's when_busy has it, and for the answer for ever");
    arguments.flag("-n,--now", &options.now, "do not wait for a slot: now or not at all");
    arguments.texts("-l,--label",
                    &options.labels,
                    "a label for the worker, which the slot must have in a pool ordered by account "
                    "(repeatable)",
                    "LABEL");
    exec::add_part_options(&arguments, &options);
    arguments.text("--socket", &options.socket, "the broker's socket", "PATH");
    arguments.footer(kCallFooter);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    options.pool = parse_pool_operand(pool, 1);
    exec::check_terms(options, false);
    if (options.now && options.timeout_ns != DIBS_FOREVER) {
        throw Failure(kExitUsage, "--now does not wait, so it goes without --timeout");
    }
    require_output();
    ignore_lost_readers();
    return hand_over(&options, std::move(body));
}

}  // namespace dibs::ctl
