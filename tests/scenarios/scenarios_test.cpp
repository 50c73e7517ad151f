// tests/scenarios/scenarios_test.cpp -- one case per file of this folder, named after it, and the
// example of docs/scenarios.md.
//
// Each case checks the file's expectations; then that the journal decides the same, byte by byte,
// when it is run again and when it has been through its binary form; then that the vocabulary
// knows every line that the replay prints.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "broker/journal/journal_error.hpp"
#include "broker/journal/journal_run.hpp"
#include "broker/journal/scenario.hpp"

namespace dibs::ctl {
namespace {

std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> replayed(const std::string& journal) {
    JournalReader reader(journal, JournalForm::kDetect);
    std::vector<std::string> lines;
    run_journal(reader, {.final_state = true, .turns = false}, [&](const std::string& line) {
        lines.push_back(line);
    });
    return lines;
}

// The decision or row as the line that would expect it.
std::string as_expectation(const std::string& line) {
    const size_t word_end = line.find('"', 2);
    const std::string word = line.substr(2, word_end - 2);
    for (const char* row : {"broker", "pool", "slot", "claim", "lease", "session", "account"}) {
        if (word == row) return "{\"expect_" + line.substr(2);
    }
    // A decision says from which state to which.
    const bool is_row = line.find("\"state\":") != std::string::npos;
    if (is_row && (word == "application" || word == "task")) return "{\"expect_" + line.substr(2);
    return R"({"expect":)" + line + "}";
}

void check(const std::string& name, const std::string& journal) {
    JournalReader reader(journal, JournalForm::kJson);
    try {
        check_scenario(reader);
    } catch (const JournalError& error) {
        FAIL() << name << ':' << reader.line() << ": " << error.what();
    }
    const std::vector<std::string> lines = replayed(journal);
    EXPECT_EQ(replayed(journal), lines);
    reader.rewind();
    EXPECT_EQ(replayed(journal_bytes(reader, JournalForm::kBinary)), lines);
    std::string expectations;
    for (const std::string& line : lines)
        expectations += as_expectation(line) + '\n';
    JournalReader printed(expectations, JournalForm::kJson);
    EXPECT_NO_THROW(journal_bytes(printed, JournalForm::kJson)) << lines.at(printed.line() - 1);
}

class ScenarioFile : public testing::Test {
  public:
    explicit ScenarioFile(std::filesystem::path path) : path_(std::move(path)) {}
    void TestBody() override { check(path_.filename().string(), read(path_)); }

  private:
    std::filesystem::path path_;
};

// S0.17-boundary.jsonl is the case S0_17_boundary.
std::string case_name(const std::filesystem::path& path) {
    std::string name = path.stem().string();
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
    return name;
}

// The first fenced block of JSON lines in the document: what it tells its reader to run.
TEST(ScenarioDocument, ItsExampleHolds) {
    static constexpr std::string_view kFence = "```jsonl\n";
    const std::string document = read(DIBS_ROOT "/docs/scenarios.md");
    const size_t begin = document.find(kFence);
    ASSERT_NE(begin, std::string::npos);
    const size_t end = document.find("```", begin + kFence.size());
    check("docs/scenarios.md", document.substr(begin + kFence.size(), end - begin - kFence.size()));
}

bool exists(const std::string& name) {
    return std::filesystem::exists(DIBS_ROOT "/tests/scenarios/" + name + ".jsonl");
}

TEST(ScenarioDocument, EveryStatementHasItsScenario) {
    for (int number = 1; number <= 41; ++number) {
        EXPECT_TRUE(exists("S0." + std::to_string(number))) << number;
    }
    for (int number = 1; number <= 32; ++number)
        EXPECT_TRUE(exists("S2." + std::to_string(number))) << number;
    for (int number = 1; number <= 41; ++number) {
        if (number == 35) continue;  // the broker's own start: docs/vocabulary.md
        EXPECT_TRUE(exists("S4." + std::to_string(number))) << number;
    }
}

// What is named after a statement begins by naming it: `// S2.17: …`.
TEST(ScenarioDocument, EveryStatementsScenarioSaysWhichItIs) {
    size_t named = 0;
    for (const auto& entry : std::filesystem::directory_iterator(DIBS_ROOT "/tests/scenarios")) {
        const std::string name = entry.path().stem().string();
        if (!name.starts_with("S2.")) continue;
        const std::string statement = "// " + name.substr(0, name.find('-'));
        const std::string text = read(entry.path());
        EXPECT_TRUE(text.starts_with(statement + ':') || text.starts_with(statement + ' ')) << name;
        ++named;
    }
    EXPECT_GE(named, 60U);
}

// docs/testing.md names scenarios in backticks; names of folders end in "/", of groups in "…".
TEST(ScenarioDocument, TheTableOfStatementsNamesFilesThatAreThere) {
    const std::string document = read(DIBS_ROOT "/docs/testing.md");
    size_t named = 0;
    for (size_t begin = document.find('`', document.find("## S0 statements"));
         begin != std::string::npos;) {
        const size_t end = document.find('`', begin + 1);
        const std::string name = document.substr(begin + 1, end - begin - 1);
        const bool file = name.find('/') == std::string::npos && !name.ends_with("…");
        EXPECT_TRUE(!file || exists(name)) << name;
        named += file ? 1 : 0;
        begin = document.find('`', end + 1);
    }
    EXPECT_GE(named, 37U);
}

}  // namespace
}  // namespace dibs::ctl

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(DIBS_ROOT "/tests/scenarios")) {
        if (entry.path().extension() == ".jsonl") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const std::filesystem::path& path : paths) {
        testing::RegisterTest(
            "Scenario",
            dibs::ctl::case_name(path).c_str(),
            nullptr,
            nullptr,
            path.c_str(),
            __LINE__,
            [path]() -> testing::Test* { return new dibs::ctl::ScenarioFile(path); });
    }
    return RUN_ALL_TESTS();
}
