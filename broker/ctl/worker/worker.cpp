// broker/ctl/worker/worker.cpp -- `dibs worker`: parses its arguments and runs one crew.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/ctl/amounts.hpp"
#include "broker/ctl/arguments.hpp"
#include "broker/ctl/command_path.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/labels.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/worker/options.hpp"
#include "broker/ctl/worker/runner.hpp"
#include "broker/text/terminal_text.hpp"
#include "shm/pool_name.hpp"

namespace dibs::ctl {

namespace {

constexpr uint32_t kProcessesMax = 1000;
constexpr NumberRange kParts = {1, DIBS_UNITS_MAX};
constexpr NumberRange kLineSizes = {1, 1U << 30};

constexpr const char* kWorkerAbout =
    "Keeps N processes of a command warm and offers each as a slot of a pool. By default a process "
    "is told each use as a line of JSON on its standard input, and its next line on standard "
    "output "
    "is the answer to the holder. A process that ends, or does not behave, is replaced; its slot "
    "is "
    "not handed out meanwhile.";

constexpr const char* kWorkerFooter =
    "\"{index}\" in the command and in attributes is the process's number, from 0, and \"{pid}\" "
    "in "
    "attributes its process id. Processes find DIBS_POOL, DIBS_WORKER_INDEX and DIBS_WORKER_NAME "
    "in their environment.\n\n"
    "Example:\n"
    "  dibs worker web:4 --uses-max 1000 \\\n"
    "      --ready-line serving \\\n"
    "      -- ./serve --port 80{index}\n\n"
    "TERM, INT or HUP stops it in order: no more uses, the present ones may end; a second one ends "
    "them. Exit codes: 0 stopped in order, 1 every process failed (--tries-max), 2 wrong usage, "
    "3 no broker, 4 no such pool, 5 not allowed, 6 more than the pool takes, 125 dibs failed, 126 "
    "the command cannot be "
    "executed, 127 there is no such command.";

constexpr std::string_view kNoType = "\n";  // the option is absent; "" is a mistake

struct WorkerWords {
    std::string pool;
    std::string type{kNoType};
    std::string lines = "answer";
    std::string leftovers;
    std::vector<std::string> attributes;
    std::optional<uint64_t> parts;
};

// --resource and --parts.
void read_resources(const WorkerWords& words, worker::Options* options) {
    check_amounts("--resource", options->resources);
    const uint64_t parts = words.parts.value_or(options->resources.empty() ? 0 : 1);
    options->parts = static_cast<uint32_t>(parts);
    if (parts <= 1) return;
    const std::string what = "--parts " + std::to_string(parts) + ": ";
    if (options->lines != worker::Lines::kNone) {
        throw Failure(kExitUsage,
                      what +
                          "a process that is told its uses serves one at a time; say --lines none "
                          "where its holders speak to it themselves");
    }
    if (options->uses_max != 0 || options->age_max_ns != 0 || options->use_max_ns != 0 ||
        !options->between.empty() || options->leftovers == worker::Leftovers::kEnd) {
        throw Failure(kExitUsage,
                      what +
                          "--uses-max, --age-max, --use-max, --between and --leftovers end are for "
                          "a process that serves one use at a time");
    }
}

void read_words(const WorkerWords& words, worker::Options* options) {
    options->pool = parse_pool_operand(words.pool, kProcessesMax);
    if (words.lines == "answer") {
        options->lines = worker::Lines::kAnswer;
    } else if (words.lines == "hold") {
        options->lines = worker::Lines::kHold;
    } else if (words.lines == "none") {
        options->lines = worker::Lines::kNone;
    } else {
        throw Failure(kExitUsage, "--lines " + words.lines + ": it is answer, hold or none");
    }
    if (words.leftovers == "end") {
        options->leftovers = worker::Leftovers::kEnd;
    } else if (words.leftovers == "keep" ||
               (words.leftovers.empty() && options->lines == worker::Lines::kNone)) {
        options->leftovers = worker::Leftovers::kKeep;
    } else if (!words.leftovers.empty()) {
        throw Failure(kExitUsage, "--leftovers " + words.leftovers + ": it is end or keep");
    }
    for (const std::string& text : words.attributes) {
        const size_t sign = text.find('=');
        if (sign == std::string::npos || sign == 0) {
            throw Failure(kExitUsage, "--attribute " + text + ": write KEY=VALUE");
        }
        options->attributes.emplace_back(text.substr(0, sign), text.substr(sign + 1));
    }
    if (words.type != kNoType) options->type = words.type;
    if (words.type != kNoType && !shm::is_pool_name(words.type.data(), words.type.size())) {
        throw Failure(kExitUsage,
                      "--type '" + words.type + "': as of a pool: " + shm::kPoolNameRule);
    }
    read_resources(words, options);
    if (options->notify && !options->ready_line.empty()) {
        throw Failure(kExitUsage, "--notify and --ready-line are two ways to be ready: choose one");
    }
    check_labels("--label", options->labels);
    if (!options->name.empty()) check_name("--name", options->name);
    if (options->name.empty()) {
        const std::string& command = options->command.front();
        options->name =
            command.substr(command.rfind('/') + 1).substr(0, 32) + "-" + std::to_string(getpid());
    }
    if (options->name.size() > DIBS_NAME_MAX - 5) {
        throw Failure(kExitUsage,
                      "--name: at most 58 bytes; the process's number stands behind it");
    }
}

void add_options(Arguments* arguments, WorkerWords* words, worker::Options* options) {
    arguments->operand("POOL", &words->pool, "the pool's name; POOL:N for N processes");
    arguments->command(&options->command, "the command and its arguments");
    arguments->text("--type",
                    &words->type,
                    "of an elastic pool (workers_max): processes run only as they are needed, at "
                    "most N, as workers of this type, whose provisioner the command is",
                    "NAME");
    arguments->text("--ready-line",
                    &options->ready_line,
                    "a process is ready once it has written a line that holds this text");
    arguments->flag("--notify",
                    &options->notify,
                    "a process is ready once it says READY=1, as by sd_notify(3); without these "
                    "two it is ready at once");
    arguments->duration("--ready-timeout",
                        &options->ready_timeout_ns,
                        "how long a process may take to be ready (30s)");
    arguments->text("--lines",
                    &words->lines,
                    "what a process is told and says: answer = a line for each use, its line is "
                    "the answer and ends the use (as it is); hold = its line goes to the holder, "
                    "the use lasts until the holder gives the slot back, and a line then says "
                    "that it is clean; none = nothing",
                    "WORD");
    arguments->text(
        "--name", &options->name, "names of the slots, with the process's number behind", "NAME");
    arguments->texts("--label", &options->labels, "a label of the slots (repeatable)", "LABEL");
    arguments->texts("--attribute",
                     &words->attributes,
                     "what goes with every grant of the slots (repeatable)",
                     "KEY=VALUE");
    arguments->texts("--resource",
                     &options->resources,
                     "what each slot has of a resource of the pool, such as memory=10GiB, 0 of "
                     "those that are not said (repeatable); without, what the pool says",
                     "NAME=AMOUNT");
    arguments->number("--parts",
                      &words->parts,
                      kParts,
                      "how many claims may have a part of a slot at a time, more than one with "
                      "--lines none; if not said, 1 with --resource, else only whole slots are "
                      "claimed");
    arguments->number(
        "--uses-max", &options->uses_max, {}, "replace a process after so many uses; 0 = never");
    arguments->duration(
        "--age-max", &options->age_max_ns, "replace a process of this age, between uses");
    arguments->duration(
        "--use-max", &options->use_max_ns, "end a process whose use takes longer than this");
    arguments->text("--leftovers",
                    &words->leftovers,
                    "processes that a use has started and that run when it is over: end = they "
                    "are killed before the slot is offered again (as it is, where control groups "
                    "can be made), keep = not before their process ends (as it is with --lines "
                    "none)",
                    "WORD");
    arguments->text("--between",
                    &options->between,
                    "a shell command to run after each use, with DIBS_WORKER_PID set; a process "
                    "is replaced if it fails",
                    "CMD");
    arguments->duration("--grace",
                        &options->grace_ns,
                        "how long a process may take to finish what its holder has given back, "
                        "the command between uses to end, and TERM to work before KILL (5s)");
    arguments->duration("--backoff",
                        &options->backoff_ns,
                        "wait so long after a failure, twice as long after the next (100ms)");
    arguments->duration("--backoff-max", &options->backoff_max_ns, "but at most so long (30s)");
    arguments->number("--tries-max",
                      &options->tries_max,
                      {},
                      "give up when every process has failed so often in a row; 0 = never");
    arguments->duration("--drain-timeout",
                        &options->drain_ns,
                        "how long to wait for uses to end when told to stop (30s)");
    arguments->number("--line-max",
                      &options->line_max,
                      kLineSizes,
                      "the longest line that a process may write, in bytes");
    arguments->text("--socket", &options->socket, "the broker's socket", "PATH");
    arguments->footer(kWorkerFooter);
}

}  // namespace

int run_worker(int argc, char** argv) {
    worker::Options options;
    WorkerWords words;
    Arguments arguments("worker", kWorkerAbout);
    add_options(&arguments, &words, &options);
    if (const auto exit_code = arguments.parse(argc, argv)) return *exit_code;
    ignore_lost_readers();
    try {
        read_words(words, &options);
        options.program = find_command(options.command.front());
        return worker::run_crews({options}, nullptr);
    } catch (const Failure& failure) {
        talk("dibs worker: " + harmless(failure.what()));
        return failure.exit_code();
    } catch (const std::exception& error) {
        talk("dibs worker: " + harmless(error.what()));
        return kExitOwnFailure;
    }
}

}  // namespace dibs::ctl
