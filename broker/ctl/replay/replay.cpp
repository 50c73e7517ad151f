// broker/ctl/replay/replay.cpp -- `dibs replay`: reads a journal, runs, checks or converts it.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "broker/config/file_bytes.hpp"
#include "broker/config/quantity.hpp"
#include "broker/ctl/arguments.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/file_kind.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/journal_reader.hpp"
#include "broker/journal/journal_run.hpp"
#include "broker/journal/scenario.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {
namespace {

struct Options {
    std::vector<std::string> files;
    std::string to_binary;
    std::string to_json;
    bool final_state = false;
    bool check = false;
    bool turns = false;
    bool binary = false;
    bool json = false;
    std::string memory_text;
    uint64_t memory_max = kJournalMemoryMax;
};

JournalForm form_of(const Options& options) {
    if (options.binary) return JournalForm::kBinary;
    return options.json ? JournalForm::kJson : JournalForm::kDetect;
}

std::string read_file(const std::string& path) {
    try {
        return path == "-" ? file_bytes(STDIN_FILENO, path) : file_bytes(path);
    } catch (const std::runtime_error& error) {
        throw Failure(kExitFailed, error.what());
    }
}

void print_line(const std::string& line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
}

void write_file(const std::string& path, const std::string& bytes) {
    if (path == "-") {
        std::fwrite(bytes.data(), 1, bytes.size(), stdout);
        return;
    }
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << bytes;
    file.close();
    if (!file) throw Failure(kExitFailed, path + ": " + std::strerror(errno));
}

void replay(JournalReader& journal, const std::string& name, const Options& options) {
    if (options.check && is_recording(journal)) {
        const uint64_t turns = check_recording(journal, options.memory_max);
        print_line(harmless(name) + ": " + counted(turns, "turn") +
                   (turns == 1 ? " decides as it was recorded" : " decide as they were recorded"));
    } else if (options.check) {
        const uint64_t held = check_scenario(journal, options.memory_max);
        print_line(harmless(name) + ": " + counted(held, "expectation") +
                   (held == 1 ? " holds" : " hold"));
    } else if (!options.to_binary.empty()) {
        write_file(options.to_binary, journal_bytes(journal, JournalForm::kBinary));
    } else if (!options.to_json.empty()) {
        write_file(options.to_json, journal_bytes(journal, JournalForm::kJson));
    } else {
        run_journal(journal, {options.final_state, options.turns, options.memory_max}, print_line);
    }
}

// FILE:LINE:COLUMN: what. Everything that was decided before it has been printed.
int complain(const std::string& name, uint32_t line, const JournalError& error) {
    std::fflush(stdout);
    const std::string column = error.column == 0 ? "" : ":" + std::to_string(error.column);
    std::fprintf(stderr,
                 "%s:%u%s: %s\n",
                 harmless(name).c_str(),
                 line,
                 column.c_str(),
                 harmless_lines(error.what()).c_str());
    return kExitFailed;
}

int replay_file(const std::string& path, const Options& options) {
    const std::string name = path == "-" ? "<stdin>" : path;
    std::string bytes = read_file(path);
    const FileKind kind = file_kind(bytes);
    const bool journal_like =
        kind == FileKind::kEmpty || kind == FileKind::kJournal || kind == FileKind::kBinaryJournal;
    if (form_of(options) == JournalForm::kDetect && !journal_like) {
        throw Failure(kExitFailed, name + ": " + is_no("journal", kind));
    }
    std::unique_ptr<JournalReader> journal;
    try {
        journal = std::make_unique<JournalReader>(std::move(bytes), form_of(options));
        replay(*journal, name, options);
        return kExitOk;
    } catch (const JournalError& error) {
        return complain(name, journal ? journal->line() : 1, error);
    }
}

// Of two of these one would be left out, without a word.
void check_together(const Arguments& arguments) {
    static constexpr std::pair<const char*, const char*> kApart[] = {
        {"--binary", "--json"},
        {"--to-binary", "--to-json"},
        {"--check", "--to-binary"},
        {"--check", "--to-json"},
        {"--check", "--final-state"},
        {"--check", "--turns"},
        {"--to-binary", "--final-state"},
        {"--to-binary", "--turns"},
        {"--to-json", "--final-state"},
        {"--to-json", "--turns"},
    };
    for (const auto& [one, other] : kApart) {
        if (!arguments.given(one) || !arguments.given(other)) continue;
        throw Failure(kExitUsage,
                      std::string(one) + " goes without " + other +
                          ": each says what is done with the journal");
    }
}

}  // namespace

int run_replay(int argc, char** argv) {
    Options options;
    Arguments arguments("replay",
                        "Runs a journal of commands through the scheduler, under the journal's own "
                        "time, and prints every decision as one line of JSON. docs/scenarios.md "
                        "describes journals.");
    arguments.operands("FILE", &options.files, "the journal; - is standard input");
    arguments.flag("--final-state", &options.final_state, "print the rows at the end, too");
    arguments.flag(
        "--turns",
        &options.turns,
        "print a line where a turn opens, too: the journal's, a timer's, or another pass");
    arguments.flag(
        "--check", &options.check, "check the journal's expectations instead, or a recording");
    arguments.flag("--binary", &options.binary, "the journal must be binary");
    arguments.flag("--json", &options.json, "the journal must be JSON lines");
    arguments.text(
        "--to-binary", &options.to_binary, "only convert the journal, to this file", "FILE");
    arguments.text("--to-json", &options.to_json, "only convert the journal, to this file", "FILE");
    arguments.text("--memory-max",
                   &options.memory_text,
                   "the most that the rows which the journal asks for may take (512MiB)",
                   "SIZE");
    if (const std::optional<int> exit = arguments.parse(argc, argv)) return *exit;
    if (arguments.given("--memory-max")) {
        const std::optional<uint64_t> size = parse_size(options.memory_text);
        if (!size) {
            throw Failure(kExitUsage,
                          "--memory-max: \"" + options.memory_text + "\" is no size such as 2GiB");
        }
        options.memory_max = *size;
    }
    check_together(arguments);
    if (!options.check && options.files.size() > 1) {
        throw Failure(kExitUsage, "several journals can only be checked");
    }
    int worst = kExitOk;
    for (const std::string& path : options.files) {
        worst = std::max(worst, replay_file(path, options));
    }
    return worst;
}

}  // namespace dibs::ctl
