// tests/broker/ctl/output/sheet_test.cpp -- what others have named, as a terminal is given it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/output/sheet.hpp"
#include "broker/text/terminal_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dibs::ctl {
namespace {

TEST(Harmless, KeepsCharactersOfAnyLength) {
    EXPECT_EQ(harmless("a \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"),
              "a \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z");
    EXPECT_EQ(harmless("\xc2\xa0"), "\xc2\xa0");  // the first that is no control character
}

TEST(Harmless, ReplacesWhatATerminalWouldObey) {
    EXPECT_EQ(harmless("\x1b[31m\n\t\x7f"), "?[31m???");
    EXPECT_EQ(harmless("a\xc2\x9b\x33\x31mz"), "a?31mz");  // U+009B begins what ESC [ begins
    EXPECT_EQ(harmless("\xc2\x80\xc2\x9f"), "??");
}

TEST(Harmless, ReplacesWhatATerminalDoesNotShow) {
    EXPECT_EQ(harmless("a\u202etxt.exe"), "a?txt.exe");  // right-to-left override
    EXPECT_EQ(harmless("\u2066a\u2069\u061c\u200f"), "?a???");
    EXPECT_EQ(harmless("a\u2028b\u2029c"), "a?b?c");
    EXPECT_EQ(harmless("web\u200b\u00ad\ufeff"), "web???");
    EXPECT_EQ(harmless("\U000e0041"), "?");
    EXPECT_EQ(harmless("\u2010\u2030\u00ae"), "\u2010\u2030\u00ae");
}

TEST(Harmless, ReplacesWhatIsNoCharacter) {
    EXPECT_EQ(harmless("a\x9b\xff"),
              "a??");  // the first of them is U+009B where bytes are characters
    EXPECT_EQ(harmless("\xe2\x82"), "??");  // cut short
}

TEST(Table, LeavesOutColumnsAndCutsNothing) {
    Sheet sheet{"", {{"number", "LEASE"}, {"pid", "PID"}, {"account", "ACCOUNT", 1}}};
    sheet.rows.push_back({Cell::numbered(Letter::kLease, 123456),
                          Cell::of(uint32_t{4194303}),
                          Cell::of("a-long-account")});
    EXPECT_EQ(table_text(sheet, 0, false),
              "  LEASE      PID  ACCOUNT\n"
              "l123456  4194303  a-long-account\n");
    EXPECT_EQ(table_text(sheet, 16, false),
              "  LEASE      PID\n"
              "l123456  4194303\n");
    EXPECT_EQ(table_text(sheet, 10, false), table_text(sheet, 16, false));
}

}  // namespace
}  // namespace dibs::ctl
