// broker/ctl/config_check.cpp -- `dibs config check`: reports mistakes in a configuration file.
// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "broker/config/config.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/file_kind.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {

namespace {

FileKind kind_of(std::string_view text) {
    const FileKind kind = file_kind(text);
    // Comments alone are good in both, and a brace may begin a table.
    return kind == FileKind::kJournal ? FileKind::kText : kind;
}

// "FILE:LINE:COLUMN: what is wrong"; of a file that cannot be read there is no line.
std::vector<Cell> cells_of(const std::string& file, std::string_view mistake) {
    std::vector<Cell> cells = {Cell::of(file), Cell(), Cell()};
    if (mistake.starts_with(file)) mistake.remove_prefix(file.size());
    for (size_t part = 1; part < cells.size(); ++part) {
        uint64_t number = 0;
        const char* end = mistake.data() + mistake.size();
        if (!mistake.starts_with(':')) break;
        const auto [at, error] = std::from_chars(mistake.data() + 1, end, number);
        if (error != std::errc{}) break;
        cells[part] = Cell::of(number);
        mistake.remove_prefix(static_cast<size_t>(at - mistake.data()));
    }
    if (mistake.starts_with(": ")) mistake.remove_prefix(2);
    cells.push_back(Cell::of(mistake));
    return cells;
}

Sheet mistakes_sheet(const std::string& file, const std::vector<std::string>& mistakes) {
    Sheet sheet{{}, {{"file", ""}, {"line", ""}, {"column", ""}, {"text", ""}}};
    for (const std::string& mistake : mistakes)
        sheet.rows.push_back(cells_of(file, mistake));
    return sheet;
}

Sheet found_sheet(const std::string& file,
                  uint64_t pools,
                  const std::vector<std::string>& mistakes) {
    Sheet sheet{"dibs.config/1",
                {{"file", "file"}, {"pools", "pools"}, {"mistakes", "mistakes"}, {"found", ""}}};
    sheet.rows.push_back({Cell::of(file),
                          Cell::of(pools),
                          Cell::of(uint64_t{mistakes.size()}),
                          Cell::of(mistakes_sheet(file, mistakes))});
    return sheet;
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
    const ConfigResult read = read_config(file);  // once: a pipe has no more
    const FileKind kind = kind_of(read.config.text.value_or(""));
    if (kind != FileKind::kText && kind != FileKind::kConfiguration && kind != FileKind::kEmpty) {
        const std::string mistake = file + ": " + is_no("configuration", kind);
        std::fprintf(stderr, "dibs config: %s\n", harmless(mistake).c_str());
        if (output.form() != Form::kTable) output.show_record(found_sheet(file, 0, {mistake}));
        return output.finish(kExitFailed);
    }
    for (const std::string& doubt : doubts_about(read.config))
        std::fprintf(stderr, "%s\n", harmless(doubt).c_str());
    for (const std::string& mistake : read.mistakes)
        std::fprintf(stderr, "%s\n", harmless(mistake).c_str());
    output.show_record(found_sheet(file, read.config.pools.size(), read.mistakes));
    return output.finish(read.mistakes.empty() ? kExitOk : kExitFailed);
}

}  // namespace dibs::ctl
