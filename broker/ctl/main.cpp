// broker/ctl/main.cpp -- `dibs`: finds the subcommand in a table and runs it.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/spelling.hpp"
#include "broker/text/terminal_text.hpp"
#include "demo/demo.hpp"

namespace {

struct Subcommand {
    std::string_view name;
    std::string_view about;
    int (*run)(int argc, char** argv);
};

constexpr Subcommand kVersion = {"version", "print the version", dibs::ctl::run_version};

constexpr Subcommand kSubcommands[] = {
    {"account", "show and change who pays, and how much", dibs::ctl::run_account},
    {"app", "add, show and end applications, and their gangs", dibs::ctl::run_app},
    {"bench", "time claims on a pool of the running broker", dibs::ctl::run_bench},
    {"call", "hand a body to a worker, print its answer", dibs::ctl::run_call},
    {"cancel", "end a waiting claim", dibs::ctl::run_cancel},
    {"claim", "hold a slot until interrupted", dibs::ctl::run_claim},
    {"config", "check a configuration file", dibs::ctl::run_config},
    {"demo", "play a workload through a private broker", dibs::ctl::run_demo},
    {"discover", "print pools of the GPUs of this host", dibs::ctl::run_discover},
    {"drain", "take no new claims", dibs::ctl::run_drain},
    {"dump", "write the whole state as one snapshot", dibs::ctl::run_dump},
    {"events", "print what the broker decides", dibs::ctl::run_events},
    {"exec", "run a command while it holds a slot", dibs::ctl::run_exec},
    {"explain", "say why a claim waits, and for whom", dibs::ctl::run_explain},
    {"fsck", "check a state: the running broker's, or one left behind", dibs::ctl::run_fsck},
    {"hold", "keep workers of elastic pools as they are", dibs::ctl::run_hold},
    {"inspect", "show one lease, also one that has ended", dibs::ctl::run_inspect},
    {"load", "go on from a snapshot", dibs::ctl::run_load},
    {"ls",
     "list pools, sets, types, slots, workers, entries, claims, leases or clients",
     dibs::ctl::run_list},
    {"metrics", "print or serve what Prometheus reads", dibs::ctl::run_metrics},
    {"offers", "list what may be claimed of slots with resources", dibs::ctl::run_offers},
    {"orders", "tell what is to be done for a dispatched pool", dibs::ctl::run_orders},
    {"pull", "ask for work for workers that do not attach", dibs::ctl::run_pull},
    {"record", "write down what the broker is given, for replay", dibs::ctl::run_record},
    {"release", "end a lease", dibs::ctl::run_release},
    {"reload", "read the configuration again", dibs::ctl::run_reload},
    {"renew", "prolong a lease", dibs::ctl::run_renew},
    {"replay", "run a journal of commands through the scheduler", dibs::ctl::run_replay},
    {"report", "say what is so of workers and queues elsewhere", dibs::ctl::run_report},
    {"show", "show everything about one thing", dibs::ctl::run_show},
    {"snapshot", "show one picture of a pool's counters", dibs::ctl::run_snapshot},
    {"status", "show the broker", dibs::ctl::run_status},
    {"stop", "end the broker, once its leases have ended", dibs::ctl::run_stop},
    {"top", "show pools, accounts, claims and leases, live", dibs::ctl::run_top},
    {"undrain", "take claims again", dibs::ctl::run_undrain},
    {"unhold", "let held workers be used and stopped again", dibs::ctl::run_unhold},
    {"upgrade", "have the installed program take over, leases and all", dibs::ctl::run_upgrade},
    kVersion,
    {"worker", "offer processes of a command as slots", dibs::ctl::run_worker},
};

// A mistyped word gets no suggestion of a command that would end, replace or hold up other users'
// leases.
bool changes_things(std::string_view name) {
    static constexpr std::array kChanging = {std::string_view("app"),
                                             std::string_view("cancel"),
                                             std::string_view("drain"),
                                             std::string_view("hold"),
                                             std::string_view("unhold"),
                                             std::string_view("load"),
                                             std::string_view("release"),
                                             std::string_view("reload"),
                                             std::string_view("stop"),
                                             std::string_view("upgrade"),
                                             std::string_view("report"),
                                             std::string_view("pull")};
    return std::find(kChanging.begin(), kChanging.end(), name) != kChanging.end();
}

void print_usage(std::FILE* to) {
    std::string text = "usage: dibs SUBCOMMAND [OPTION...]\n\n";
    for (const Subcommand& subcommand : kSubcommands) {
        const std::string space(11 - subcommand.name.size(), ' ');
        text += "  " + std::string(subcommand.name) + space + std::string(subcommand.about) + "\n";
    }
    text +=
        "\n`dibs SUBCOMMAND --help` says more. --socket PATH may stand before the subcommand; -V, "
        "--version is `dibs version`.\n";
    std::fputs(dibs::help_for_output(text).c_str(), to);
}

int run(const Subcommand& subcommand, int argc, char** argv) {
    try {
        return subcommand.run(argc, argv);
    } catch (const dibs::ctl::Failure& failure) {
        dibs::ctl::talk("dibs " + std::string(subcommand.name) + ": " +
                        dibs::harmless(failure.what()));
        // Only what stands for a command of its own needs a code for its own failures.
        const bool own = failure.exit_code() == dibs::ctl::kExitOwnFailure;
        return own ? dibs::ctl::kExitFailed : failure.exit_code();
    }
}

// `dibs --socket PATH status` is `dibs status --socket PATH`. The words, the program's first.
std::vector<char*> with_the_socket_behind(int argc, char** argv) {
    std::vector<char*> words(argv, argv + argc);
    size_t count = 0;
    if (argc > 1 && std::string_view(argv[1]).starts_with("--socket=")) count = 1;
    if (argc > 2 && std::string_view(argv[1]) == "--socket") count = 2;
    const auto first = words.begin() + 1;
    if (count != 0 && words.size() > count + 1) {
        std::rotate(first,
                    first + static_cast<ptrdiff_t>(count),
                    first + static_cast<ptrdiff_t>(count) + 1);
    }
    words.push_back(nullptr);
    return words;
}

int dispatch(int argc, char** argv) {
    if (argc < 2) {
        print_usage(stderr);
        return dibs::ctl::kExitUsage;
    }
    const std::string_view name = argv[1];
    if (name == "--help" || name == "-h" || name == "help") {
        print_usage(stdout);
        return dibs::ctl::kExitOk;
    }
    if (name == "--version" || name == "-V") return run(kVersion, argc - 1, argv + 1);
    if (name == "demo-floors")
        return dibs::ctl::run_demo_floors(argc - 1, argv + 1);  // of scripts/
    if (name == "demo-worker") return dibs::ctl::run_demo_worker(argc - 1, argv + 1);  // of `demo`
    for (const Subcommand& subcommand : kSubcommands) {
        if (subcommand.name == name) return run(subcommand, argc - 1, argv + 1);
    }
    std::set<std::string_view> known;
    for (const Subcommand& subcommand : kSubcommands) {
        if (!changes_things(subcommand.name)) known.insert(subcommand.name);
    }
    const auto near = dibs::nearest_word(name, known);
    if (name == "--socket" || name.starts_with("--socket=")) {
        std::fputs("dibs: --socket needs a PATH, and a subcommand behind it\n", stderr);
        return dibs::ctl::kExitUsage;
    }
    if (name.starts_with('-')) {
        std::fprintf(stderr,
                     "dibs: there is no option %s before the subcommand; --socket PATH and "
                     "--version may stand there\n`dibs --help` lists the rest.\n",
                     dibs::harmless(name).c_str());
        return dibs::ctl::kExitUsage;
    }
    const std::string hint = near ? "; did you mean " + std::string(*near) + "?" : "";
    std::fprintf(stderr,
                 "dibs: there is no subcommand \"%s\"%s\n",
                 dibs::harmless(name).c_str(),
                 hint.c_str());
    std::fputs("`dibs --help` lists them.\n", stderr);
    return dibs::ctl::kExitUsage;
}

// A closed descriptor's number would be used by the next open: a socket, or a client's segment, and
// output would go into it. The stand-in for an output is open for reading, so that a write to it,
// by this tool or a command that it starts, fails with EBADF, as if it were closed.
bool open_standard_streams() {
    for (int fd = 0; fd < 3; ++fd) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) return false;
    }
    return true;
}

// Writes what is left, and reports what was not written. A reader that stops reading ends it
// quietly.
int finish(int code) {
    const bool failed = std::ferror(stdout) != 0;
    const bool flushed = std::fflush(stdout) == 0;
    if ((flushed && !failed) || errno == EPIPE) return code;
    std::fprintf(stderr, "dibs: %s\n", dibs::ctl::unwritten(flushed ? 0 : errno).c_str());
    return code == dibs::ctl::kExitOk ? dibs::ctl::kExitFailed : code;
}

}  // namespace

int main(int argc, char** argv) {
    if (!open_standard_streams()) return dibs::ctl::kExitFailed;
    // The longest help fits, so that it is finish() that writes it, and knows why it could not.
    static std::array<char, 1U << 16U> buffer;
    if (isatty(STDOUT_FILENO) == 0) {
        (void)std::setvbuf(stdout, buffer.data(), _IOFBF, buffer.size());
    }
    try {
        std::vector<char*> words = with_the_socket_behind(argc, argv);
        return finish(dispatch(static_cast<int>(words.size() - 1), words.data()));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "dibs: %s\n", dibs::harmless(error.what()).c_str());
        return dibs::ctl::kExitFailed;
    }
}
