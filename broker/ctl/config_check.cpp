// broker/ctl/config_check.cpp -- `dibs config check`: what is wrong with a configuration, before a
// broker reads it.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "broker/config.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/file_kind.hpp"
#include "broker/ctl/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

// A file that cannot be read is told by who reads it.
FileKind kind_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    if (file.is_open()) bytes << file.rdbuf();
    const FileKind kind = file_kind(bytes.view());
    // Comments alone are good in both, and a brace may begin a table.
    return kind == FileKind::kJournal ? FileKind::kText : kind;
}

}  // namespace

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
    const FileKind kind = kind_of(file);
    if (kind != FileKind::kText && kind != FileKind::kConfiguration && kind != FileKind::kEmpty) {
        throw Failure(kExitFailed, file + ": " + is_no("configuration", kind));
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
