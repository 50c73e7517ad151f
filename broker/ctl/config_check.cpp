// broker/ctl/config_check.cpp -- `dibs config check`: what is wrong with a configuration, before a
// broker reads it.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "broker/config.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

int run_config(int argc, char** argv) {
    std::string word;
    std::string file;
    Arguments arguments("config",
                        "Checks a configuration file of dibsd: every mistake is a line FILE:LINE:"
                        "COLUMN. Exit code 1: there are some.");
    arguments.operand("check", &word, "the word check");
    arguments.operand("FILE", &file, "the configuration");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    if (word != "check") {
        throw Failure(kExitUsage,
                      "\"" + word + "\": dibs config can only check: dibs config check FILE");
    }
    const ConfigResult read = read_config(file);
    for (const std::string& mistake : read.mistakes)
        std::fprintf(stderr, "%s\n", mistake.c_str());
    Sheet sheet{"dibs.config/1", {{"file", "file"}, {"pools", "pools"}, {"mistakes", "mistakes"}}};
    sheet.rows.push_back({Cell::of(file),
                          Cell::of(uint64_t{read.config.pools.size()}),
                          Cell::of(uint64_t{read.mistakes.size()})});
    output.show_record(sheet);
    return output.finish(read.mistakes.empty() ? kExitOk : kExitFailed);
}

}  // namespace dibs::ctl
