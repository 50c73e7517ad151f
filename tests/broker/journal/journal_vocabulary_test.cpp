// tests/broker/journal/journal_vocabulary_test.cpp -- docs/scenarios.md tells what
// schemas/journal.fbs has: every command with whether it is supported, every field of what is.
// SPDX-License-Identifier: Apache-2.0
#include <flatbuffers/idl.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "schemas/journal_bfbs_generated.h"

namespace dibs::ctl {
namespace {

std::string document() {
    std::ifstream file(DIBS_ROOT "/docs/scenarios.md");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// NameMap in backticks of a piece of Markdown.
std::set<std::string> marked(const std::string& text) {
    std::set<std::string> names;
    for (size_t begin = text.find('`'); begin != std::string::npos;) {
        const size_t end = text.find('`', begin + 1);
        if (end == std::string::npos) break;
        names.insert(text.substr(begin + 1, end - begin - 1));
        begin = text.find('`', end + 1);
    }
    return names;
}

// First cells of the table's rows whose second cell is `support`.
std::set<std::string> commands_that_are(const std::string& support) {
    std::set<std::string> names;
    std::istringstream lines(document());
    for (std::string line; std::getline(lines, line);) {
        const size_t cell = line.find(" | " + support + " | ");
        if (line.starts_with("| `") && cell != std::string::npos) {
            names.merge(marked(line.substr(0, cell)));
        }
    }
    return names;
}

class Vocabulary : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(parser_.Deserialize(journal::LineBinarySchema::data(),
                                        journal::LineBinarySchema::size()));
    }
    static bool later(const flatbuffers::FieldDef& field) {
        return field.attributes.Lookup("later") != nullptr;
    }
    [[nodiscard]] const auto& commands() const { return parser_.root_struct_def_->fields.vec; }

    flatbuffers::Parser parser_;
};

TEST_F(Vocabulary, EveryCommandIsInTheTableOfWhatIsSupported) {
    std::set<std::string> now;
    std::set<std::string> later_on;
    for (const flatbuffers::FieldDef* command : commands()) {
        (later(*command) ? later_on : now).insert(command->name);
    }
    EXPECT_EQ(commands_that_are("now"), now);
    EXPECT_EQ(commands_that_are("no"), later_on);
}

TEST_F(Vocabulary, EveryFieldOfASupportedCommandIsDescribed) {
    const std::string text = document();
    const std::set<std::string> names = marked(text);
    std::set<const flatbuffers::StructDef*> seen;
    std::vector<const flatbuffers::StructDef*> open = {parser_.root_struct_def_};
    while (!open.empty()) {
        const flatbuffers::StructDef* table = open.back();
        open.pop_back();
        if (!seen.insert(table).second) continue;
        for (const flatbuffers::FieldDef* field : table->fields.vec) {
            const bool in_braces = text.find("{\"" + field->name + "\"") != std::string::npos;
            EXPECT_TRUE(names.contains(field->name) || in_braces)
                << table->name << '.' << field->name;
            const bool followed = field->value.type.struct_def != nullptr && !later(*field);
            if (followed) open.push_back(field->value.type.struct_def);
        }
    }
}

}  // namespace
}  // namespace dibs::ctl
