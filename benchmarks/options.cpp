// benchmarks/options.cpp -- dibs-bench's command line.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace dibs::bench {

bool Options::wants(const std::string& group) const {
    return std::find(groups.begin(), groups.end(), group) != groups.end();
}

std::optional<Options> parse_options(int argc, char** argv, int* exit_code) {
    Options options;
    CLI::App app("Each figure of dibs beside its floor, in one run.", "dibs-bench");
    app.add_option("--groups",
                   options.groups,
                   "ring, futex, hostile, parked, core, gangs, board, accounts, memory, deaths; "
                   "and workers "
                   "and peers, which are not run unless they are named")
        ->delimiter(',')
        ->check(CLI::IsMember({"ring",
                               "futex",
                               "hostile",
                               "parked",
                               "core",
                               "gangs",
                               "board",
                               "accounts",
                               "memory",
                               "deaths",
                               "workers",
                               "peers"}));
    app.add_option("--rounds", options.rounds, "rounds of each race")->check(CLI::PositiveNumber);
    app.add_option("--scale", options.scale, "factor on the operations in a round")
        ->check(CLI::PositiveNumber);
    app.add_option("--idle-seconds", options.idle_seconds, "how long idleness is watched")
        ->check(CLI::PositiveNumber);
    app.add_option("--json", options.json, "write the report to this file as JSON");
    app.add_option("--trace", options.trace, "accounts: replay this SWF file, an account per user")
        ->check(CLI::ExistingFile);
    app.add_flag("--check", options.check, "list which targets are met; never an exit code");
    app.add_option(
           "--work",
           options.work,
           "for profilers: this work, untimed: core, several (pools), claim, accounts, exchange, "
           "advance, trace")
        ->check(CLI::IsMember(
            {"core", "several", "claim", "accounts", "exchange", "advance", "trace"}));
    app.add_option("--operations", options.operations, "--work: claims, exchanges or turns")
        ->check(CLI::PositiveNumber);
    app.add_option("--slots", options.slots, "--work: slots of the pool")
        ->check(CLI::PositiveNumber);
    app.add_option("--batch", options.batch, "--work: claims in a turn")->check(CLI::Range(1, 256));
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        *exit_code = app.exit(error) == 0 ? 0 : 2;
        return std::nullopt;
    }
    return options;
}

}  // namespace dibs::bench
