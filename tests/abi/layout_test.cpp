// tests/abi/layout_test.cpp -- the layout header, its document and its frozen version agree.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "shm/layout.hpp"
#include "tests/abi/listing.hpp"

namespace dibs::abi {
namespace {

std::string text_of(const std::string& path) {
    std::ifstream file(DIBS_SOURCE_ROOT "/" + path);
    EXPECT_TRUE(file.good()) << "no " << path;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines)
        text += line + '\n';
    return text;
}

const Listing kPair = {{{"Pair", 16, {{"left", 0, 8}, {"right", 8, 8}}}},
                       {{"Side", "kLeft", "0"}, {"", "kMax", "-3"}}};

constexpr const char* kPairTables = R"(
Some words, and | a row | that is none |.
### `Pair`, 16 bytes
| offset | size | field | writer | meaning |
|---|---|---|---|---|
| 0 | 8 | `left` | turn | |
| 8 | 8 | `right` | turn | |
### `Side`
| value | name | meaning |
|---|---|---|
| 0 | `kLeft` | |
### `constants`
| -3 | `kMax` | |
)";

std::string pair_tables_with(const std::string& line, const std::string& instead) {
    std::string tables = kPairTables;
    const size_t place = tables.find(line);
    EXPECT_NE(place, std::string::npos) << line;
    return tables.replace(place, line.size(), instead);
}

std::string said_of(const std::string& tables) {
    return joined(differences(kPair, listing_of_document(tables)));
}

TEST(LayoutComparison, FindsNothingWhereBothAgree) {
    EXPECT_EQ(said_of(kPairTables), "");
}

TEST(LayoutComparison, SeesAWrongOffset) {
    EXPECT_EQ(said_of(pair_tables_with("| 8 | 8 | `right`", "| 9 | 8 | `right`")),
              "Pair: header has right at 8, 8 bytes; document has right at 9, 8 bytes\n");
}

TEST(LayoutComparison, SeesAWrongSize) {
    EXPECT_EQ(said_of(pair_tables_with("| 8 | 8 | `right`", "| 8 | 4 | `right`")),
              "Pair: header has right at 8, 8 bytes; document has right at 8, 4 bytes\n");
    EXPECT_EQ(said_of(pair_tables_with("16 bytes", "24 bytes")),
              "Pair: header has 16 bytes, document 24\n");
}

TEST(LayoutComparison, SeesARowThatIsMissingOrTooMuch) {
    EXPECT_EQ(said_of(pair_tables_with("| 8 | 8 | `right` | turn | |\n", "")),
              "Pair: header has right at 8, 8 bytes; document has nothing more\n");
    EXPECT_EQ(said_of(pair_tables_with("### `Side`", "| 16 | 4 | `more` | turn | |\n### `Side`")),
              "Pair: header has nothing more; document has more at 16, 4 bytes\n");
}

TEST(LayoutComparison, SeesAStructThatOneSideLacks) {
    EXPECT_EQ(said_of(pair_tables_with("`Pair`", "`Pear`")),
              "Pair: document has no table\nPear: header has no such struct\n");
}

TEST(LayoutComparison, SeesAValueThatDiffers) {
    EXPECT_EQ(said_of(pair_tables_with("| 0 | `kLeft`", "| 1 | `kLeft`")),
              "Side::kLeft = 0: document lacks it\nSide::kLeft = 1: header lacks it\n");
    EXPECT_EQ(said_of(pair_tables_with("| -3 | `kMax` | |\n", "")),
              "kMax = -3: document lacks it\n");
}

// With explicit padding the fields of a struct lie end to end, and those of a union at one place:
// so a field that the listing lacks shows as a hole, whatever the reader of the header did.
TEST(Layout, FieldsLieEndToEnd) {
    for (const Struct& type : compiled_listing().structs) {
        uint64_t begin = 0;
        uint64_t end = 0;
        for (const Field& field : type.fields) {
            const bool united = field.offset == begin && field.offset + field.size == end;
            if (!united) {
                EXPECT_EQ(field.offset, end) << type.name << '.' << field.name;
            }
            begin = field.offset;
            end = field.offset + field.size;
        }
        EXPECT_EQ(end, type.size) << type.name;
    }
}

TEST(Layout, ListsTheHeaderAndNotALesserOne) {
    const Listing listing = compiled_listing();
    EXPECT_GE(listing.structs.size(), 33U);
    EXPECT_GE(listing.values.size(), 150U);
}

TEST(Layout, IsWhatTheDocumentSays) {
    EXPECT_EQ(
        joined(differences(compiled_listing(), listing_of_document(text_of("docs/shm-layout.md")))),
        "");
}

// A version never changes: what differs from it is another one, with another number and a file of
// its own beside this one.
TEST(Layout, IsTheFrozenOneOfItsVersion) {
    const std::string path = "tests/abi/layout-" + std::to_string(shm::kLayoutVersion) + ".txt";
    EXPECT_EQ(to_text(compiled_listing()), text_of(path)) << path;
}

}  // namespace
}  // namespace dibs::abi
