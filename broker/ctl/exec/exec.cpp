// broker/ctl/exec/exec.cpp -- `dibs exec`: parses its arguments and starts the wrapper.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/arguments.hpp"
#include "broker/ctl/command_path.hpp"
#include "broker/ctl/exec/options.hpp"
#include "broker/ctl/exec/wrapper.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/labels.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {

namespace {

constexpr const char* kExecAbout =
    "Claims a slot of a pool (or N, all or none), runs the command, and gives the slot back when "
    "the command ends, however it ends. The command finds the slot in its environment: DIBS_POOL, "
    "DIBS_SLOT, DIBS_LEASE, DIBS_FENCE, and DIBS_ATTR_X for each attribute x of the slot; those of "
    "further pools in DIBS_POOL_2, DIBS_SLOT_2 and so on. If the lease ends first, the command is "
    "ended.";

constexpr const char* kExecFooter =
    "Example:\n"
    "  dibs exec gpu -t 10min \\\n"
    "      -e CUDA_VISIBLE_DEVICES=device \\\n"
    "      -- python train.py\n\n"
    "Exit codes: the command's own (its signal, if one ended it); 2 wrong usage, 3 no broker, "
    "4 no such pool, 5 not allowed, 6 a limit, 75 no slot free, 78 its GPU is outside of "
    "CUDA_VISIBLE_DEVICES or its like here, 124 the timeout passed, 125 dibs "
    "failed, or the lease ended before the command, 126 the command cannot be executed, 127 there "
    "is no such command.";

constexpr const char* kCreationForm = "NAME=N";
constexpr NumberRange kCreatedSlots = {1, 1U << 20};
constexpr NumberRange kExitCodes = {0, 255};

struct ExecWords {
    std::vector<std::string> pools;
    std::vector<std::string> creations;
    std::vector<std::string> variables;
    std::vector<std::string> claim_options;
    std::optional<uint64_t> conflict_exit;
    std::string preempt;
    bool tree = false;
    bool no_tree = false;
};

std::pair<std::string, std::string> pair_of(const std::string& text,
                                            const std::string& option,
                                            const std::string& form) {
    const size_t sign = text.find('=');
    if (sign == std::string::npos || sign == 0) {
        throw Failure(kExitUsage, option + " " + text + ": write " + form);
    }
    return {text.substr(0, sign), text.substr(sign + 1)};
}

// A shell has no other variables, and most programs cannot ask for them.
std::pair<std::string, std::string> variable_of(const std::string& text) {
    auto pair = pair_of(text, "--env", "VARIABLE=ATTRIBUTE");
    static constexpr std::string_view kLetters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    const bool fits = pair.first.find_first_not_of(kLetters) == std::string::npos;
    const bool digit_first = pair.first.front() >= '0' && pair.first.front() <= '9';
    if (fits && !digit_first && !pair.second.empty()) return pair;
    throw Failure(kExitUsage,
                  "--env " + text +
                      (pair.second.empty() ? ": write VARIABLE=ATTRIBUTE"
                                           : ": a variable's name has letters, digits and \"_\", "
                                             "and no digit first"));
}

void read_pools(const std::vector<std::string>& words, exec::Options* options) {
    if (words.size() > DIBS_PARTS_MAX) {
        throw Failure(kExitUsage,
                      std::to_string(words.size()) + " pools: one claim is over at most " +
                          std::to_string(DIBS_PARTS_MAX));
    }
    std::vector<PoolOperand> pools;
    uint32_t units = 0;
    for (const std::string& word : words) {
        const PoolOperand pool = parse_pool_operand(word, DIBS_UNITS_MAX);
        const bool again = std::any_of(
            pools.begin(), pools.end(), [&](const auto& one) { return one.name == pool.name; });
        if (again) {
            throw Failure(kExitUsage,
                          "pool \"" + pool.name + "\" is named twice: write " + pool.name +
                              ":N for N of its slots");
        }
        units += pool.count;
        pools.push_back(pool);
    }
    if (units > DIBS_UNITS_MAX) {
        throw Failure(kExitUsage,
                      std::to_string(units) + " slots in all: one claim has at most " +
                          std::to_string(DIBS_UNITS_MAX));
    }
    options->pool = pools.front();
    options->also.assign(pools.begin() + 1, pools.end());
}

void read_words(const ExecWords& words, exec::Options* options) {
    read_pools(words.pools, options);
    for (const std::string& text : words.variables)
        options->variables.push_back(variable_of(text));
    for (const std::string& text : words.claim_options)
        options->claim_options.push_back(pair_of(text, "--option", "KEY=VALUE"));
    if (words.conflict_exit) options->conflict_exit = static_cast<int>(*words.conflict_exit);
    exec::read_preempt(words.preempt, options);
    if (words.tree && words.no_tree) {
        throw Failure(kExitUsage, "--tree and --no-tree contradict each other: say one of them");
    }
    if (words.tree) options->tree = exec::Tree::kRequired;
    if (words.no_tree) options->tree = exec::Tree::kNone;
    if (options->now && options->timeout_ns != DIBS_FOREVER) {
        throw Failure(kExitUsage, "--now does not wait, so it goes without --timeout");
    }
}

struct Creation {
    std::string text;
    admin::RequestT request;
};

std::vector<Creation> read_creations(const ExecWords& words) {
    std::vector<Creation> creations;
    for (const std::string& text : words.creations) {
        const auto [name, slots] = pair_of(text, "--create", kCreationForm);
        Creation& creation = creations.emplace_back();
        creation.text = "--create " + text;
        creation.request.ask = admin::Ask::create;
        creation.request.pool = parse_pool_operand(name + ":1", 1).name;
        const auto count = parse_number(slots, kCreatedSlots);
        if (!count) {
            throw Failure(kExitUsage, creation.text + ": " + no_number(slots, kCreatedSlots));
        }
        creation.request.number = *count;
    }
    return creations;
}

// The pool of the command is one of those that are made, or is there.
void check_creations(const std::vector<Creation>& creations, const exec::Options& options) {
    for (const Creation& creation : creations) {
        if (creation.request.pool == options.pool.name) return;
    }
    AdminClient client(options.socket, exec::answer_timeout_ns(options));
    const auto is_it = [&](const auto& row) { return row->name == options.pool.name; };
    const auto pools = client.pools({});
    if (std::any_of(pools.begin(), pools.end(), is_it)) return;
    const auto sets = client.sets();
    if (std::any_of(sets.begin(), sets.end(), is_it)) return;
    throw Failure(kExitUsage,
                  creations.front().text + ": the command is for pool \"" + options.pool.name +
                      "\", which is not there: name the same pool twice");
}

// Makes the counted pools that --create names; a second command finds them there.
void create_pools(const std::vector<Creation>& creations, const exec::Options& options) {
    if (creations.empty()) return;
    check_creations(creations, options);
    for (const Creation& creation : creations)
        (void)AdminClient(options.socket, exec::answer_timeout_ns(options))
            .must(creation.request, creation.text);
}

}  // namespace

namespace exec {

void add_part_options(Arguments* arguments, Options* options) {
    arguments->texts("--want",
                     &options->least,
                     "a part of one slot: at least so much of the resource, such as memory=10GiB "
                     "(repeatable)",
                     "NAME=AMOUNT");
    arguments->texts("--up-to",
                     &options->most,
                     "and at most so much, where the slot has it; as --want, if not said "
                     "(repeatable)",
                     "NAME=AMOUNT");
}

void add_member_options(Arguments* arguments, Options* options) {
    arguments->text("--app",
                    &options->application,
                    "run it as a task of this application of yours (dibs app), which says when",
                    "NAME");
    arguments->text("--task", &options->task, "with --app: which task of it", "ID");
    arguments->text(
        "--group", &options->group, "with --app: in which group of its gang; else in none", "NAME");
}

void check_member(const Options& options, const Arguments& arguments) {
    bool given = false;
    for (const auto& [option, name] : {std::pair("--app", &options.application),
                                       std::pair("--task", &options.task),
                                       std::pair("--group", &options.group)}) {
        if (!arguments.given(option)) continue;
        check_name(option, *name);
        given = true;
    }
    if (!given) return;
    if (options.application.empty()) {
        throw Failure(kExitUsage, "--task and --group go with --app, which names the application");
    }
    if (options.task.empty()) {
        throw Failure(kExitUsage,
                      "--app needs --task: any name that no other task of the application has");
    }
    if (!options.also.empty()) {
        throw Failure(kExitUsage, "--app: a task has one pool, that of its application");
    }
}

}  // namespace exec

int run_exec(int argc, char** argv) {
    exec::Options options;
    ExecWords words;
    Arguments arguments("exec", kExecAbout);
    arguments.operands(
        "POOL",
        &words.pools,
        "the pool's name, or a pool set's; POOL:N for N slots at once; several pools for slots of "
        "each, all or none");
    arguments.command(&options.command, "the command and its arguments");
    arguments.duration("-t,--timeout",
                       &options.timeout_ns,
                       "how long to wait for the slot; if not said, as the pool's when_busy has "
                       "it: for ever, or not at all");
    arguments.flag("-n,--now", &options.now, "do not wait: now or not at all");
    arguments.number("-E,--conflict-exit",
                     &words.conflict_exit,
                     kExitCodes,
                     "exit code in place of 75 (no slot free) and 124 (the timeout passed)");
    arguments.texts("-e,--env",
                    &words.variables,
                    "set VARIABLE to the slots' attribute (repeatable)",
                    "VARIABLE=ATTRIBUTE");
    arguments.duration("-k,--keepalive",
                       &options.keepalive_ns,
                       "hold the lease for this long at a time and prolong it while the command "
                       "runs and is not stopped");
    arguments.duration("-g,--grace",
                       &options.grace_ns,
                       "between TERM and KILL for a command whose lease has ended; 5s if not said");
    arguments.flag("-r,--run-on",
                   &options.run_on,
                   "say when the lease has ended, and leave the command alone: its slot may be "
                   "another's then");
    arguments.flag("--tree",
                   &words.tree,
                   "keep the slot until all that the command has started has ended (in a pool of "
                   "strict expiry what is left is killed), where no control group can be had by "
                   "waiting for it; without a word that is so where one can be had");
    arguments.flag("--no-tree", &words.no_tree, "the slot is kept for the command's process alone");
    arguments.texts("-l,--label",
                    &options.labels,
                    "a label for the slot's worker, which the slot must have in a pool ordered by "
                    "account (repeatable)",
                    "LABEL");
    arguments.texts("-p,--prefer", &options.prefer, exec::kPreferAbout, "LABEL");
    exec::add_part_options(&arguments, &options);
    exec::add_member_options(&arguments, &options);
    arguments.text("--meta", &options.meta, exec::kMetaAbout);
    arguments.number("-P,--priority", &options.priority, exec::kPriorities, exec::kPriorityAbout);
    arguments.text("--account", &options.account, exec::kAccountAbout, "NAME");
    arguments.text(
        "--preempt",
        &words.preempt,
        std::string(exec::kPreemptAbout) +
            "; the command gets TERM then, and KILL when the lease has ended. As the pool "
            "is configured, if not said",
        "WORD");
    arguments.texts(
        "-o,--option", &words.claim_options, "for the slot's worker (repeatable)", "KEY=VALUE");
    arguments.texts("-c,--create",
                    &words.creations,
                    "make a counted pool NAME of N slots first, unless it is there; for the "
                    "broker's administrators (repeatable)",
                    kCreationForm);
    arguments.text("--socket", &options.socket, "the broker's socket", "PATH");
    arguments.flag("-v,--verbose", &options.verbose, "say what was granted, on standard error");
    arguments.footer(kExecFooter);
    if (const auto exit_code = arguments.parse(argc, argv)) return *exit_code;
    ignore_lost_readers();
    try {
        read_words(words, &options);
        exec::check_terms(options, arguments.given("--account"));
        exec::check_member(options, arguments);
        const std::vector<Creation> creations = read_creations(words);
        options.program = find_command(options.command.front());
        create_pools(creations, options);
        return exec::run_wrapped(options);
    } catch (const Failure& failure) {
        talk("dibs exec: " + harmless(failure.what()));
        const int code = failure.exit_code();
        return code == kExitNoneFree ? options.conflict_exit.value_or(code) : code;
    } catch (const std::exception& error) {
        talk("dibs exec: " + harmless(error.what()));
        return kExitOwnFailure;
    }
}

}  // namespace dibs::ctl
