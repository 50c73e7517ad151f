// broker/ctl/main.cpp -- `dibs`: a table of subcommands.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <string_view>

#include "broker/ctl/demo/demo.hpp"
#include "broker/ctl/subcommand.hpp"

namespace {

struct Subcommand {
    std::string_view name;
    std::string_view about;
    int (*run)(int argc, char** argv);
};

constexpr Subcommand kSubcommands[] = {
    {"demo", "play a workload through a private broker", dibs::ctl::run_demo},
    {"exec", "run a command while it holds a slot", dibs::ctl::run_exec},
    {"replay", "run a journal of commands through the scheduler", dibs::ctl::run_replay},
    {"version", "print the version", dibs::ctl::run_version},
};

void print_usage(std::FILE* to) {
    std::fputs("usage: dibs SUBCOMMAND [OPTION...]\n\n", to);
    for (const Subcommand& subcommand : kSubcommands) {
        std::fprintf(to, "  %-10s %s\n", subcommand.name.data(), subcommand.about.data());
    }
    std::fputs("\n`dibs SUBCOMMAND --help` says more.\n", to);
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
    if (name == "--version") return dibs::ctl::run_version(argc - 1, argv + 1);
    if (name == "demo-worker") return dibs::ctl::run_demo_worker(argc - 1, argv + 1);  // of `demo`
    for (const Subcommand& subcommand : kSubcommands) {
        if (subcommand.name == name) return subcommand.run(argc - 1, argv + 1);
    }
    std::fprintf(stderr, "dibs: there is no subcommand \"%s\"\n", argv[1]);
    print_usage(stderr);
    return dibs::ctl::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return dispatch(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "dibs: %s\n", error.what());
        return dibs::ctl::kExitFailed;
    }
}
