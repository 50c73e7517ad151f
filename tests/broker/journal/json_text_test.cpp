// tests/broker/journal/json_text_test.cpp -- a line of JSON is one, whatever is said in it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/json_text.hpp"
#include "broker/text/terminal_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dibs::ctl {
namespace {

std::string quoted(std::string_view value) {
    JsonText json;
    json.text({}, value);
    return json.line();
}

TEST(JsonText, PassesCharactersOfAnyLengthThrough) {
    EXPECT_EQ(quoted("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"),
              "\"a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z\"");
}

TEST(JsonText, WritesWhatIsNoCharacterAsAReplacement) {
    EXPECT_EQ(quoted("a\xff"), R"("a\ufffd")");
    EXPECT_EQ(quoted("\xc3"), R"("\ufffd")");                      // cut short
    EXPECT_EQ(quoted("\xc0\xaf"), R"("\ufffd\ufffd")");            // longer than it need be
    EXPECT_EQ(quoted("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");  // half of a pair
    EXPECT_EQ(quoted("\xe2\x82\""), R"("\ufffd\ufffd\"")");
}

TEST(JsonText, EscapesWhatATerminalWouldObey) {
    EXPECT_EQ(quoted("\x1b[31m\n\t\x7f"), R"("\u001b[31m\n\t\u007f")");
    EXPECT_EQ(quoted("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0"), "\"\\u0080\\u009b\\u009f\xc2\xa0\"");
}

TEST(JsonText, EscapesWhatATerminalDoesNotShow) {
    EXPECT_EQ(quoted("a\u202e\u2028\u00ad"), R"("a\u202e\u2028\u00ad")");
    EXPECT_EQ(quoted("\U000e0041"), R"("\udb40\udc41")");
}

TEST(Utf8, IsSizedCharacterByCharacter) {
    EXPECT_EQ(utf8_size("a"), 1U);
    EXPECT_EQ(utf8_size("\xe2\x82\xac."), 3U);
    EXPECT_EQ(utf8_size("\xf5\x80\x80\x80"), 0U);
    EXPECT_EQ(utf8_size(""), 0U);
}

}  // namespace
}  // namespace dibs::ctl
