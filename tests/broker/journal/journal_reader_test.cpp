// tests/broker/journal/journal_reader_test.cpp -- what is wrong with a journal, and where.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/journal_reader.hpp"

#include <gtest/gtest.h>

#include <string>

#include "broker/journal/journal_error.hpp"
#include "broker/journal/journal_run.hpp"
#include "schemas/journal_generated.h"
#include "tests/repeats.hpp"

namespace dibs::ctl {
namespace {

constexpr const char* kPool = R"({"pool":{"name":"gpu","slots":1}})";
constexpr const char* kAlice = R"({"session":{"name":"alice"}})";
constexpr const char* kTurn = R"({"turn":{}})";

// "LINE:COLUMN: what" of the error that running the journal ends with; "" if it runs.
std::string complaint(const std::string& journal, JournalForm form = JournalForm::kDetect) {
    std::unique_ptr<JournalReader> reader;
    try {
        reader = std::make_unique<JournalReader>(journal, form);
        run_journal(*reader, {}, [](const std::string&) {});
        return "";
    } catch (const JournalError& error) {
        return std::to_string(reader ? reader->line() : 1) + ':' + std::to_string(error.column) +
               ": " + error.what();
    }
}

std::string lines(std::initializer_list<std::string> all) {
    std::string journal;
    for (const std::string& line : all)
        journal += line + '\n';
    return journal;
}

std::string binary(const std::string& json) {
    JournalReader reader(json, JournalForm::kJson);
    return journal_bytes(reader, JournalForm::kBinary);
}

TEST(JournalReader, ReadsCommentsAndEmptyLinesAsNothing) {
    EXPECT_EQ(complaint(lines({"// a", "", "  # b", "\t", kPool, kTurn})), "");
    EXPECT_EQ(complaint(""), "");
}

TEST(JournalReader, NamesTheLineAndColumnOfWhatIsNotJson) {
    EXPECT_EQ(complaint(lines({kPool, "pool gpu", kTurn})), "2:4: expecting: { instead got: pool");
    EXPECT_EQ(complaint(lines({kPool, R"({"turn":{}} {"turn":{}})"})),
              "2:13: expecting: end of file instead got: {");
    EXPECT_EQ(complaint(lines({R"({"turn":{})"})), "1:10: expecting: , instead got: end of file");
    EXPECT_EQ(complaint(lines({"{turn:{}}"})), "1:5: expecting: string constant instead got: turn");
}

TEST(JournalReader, RefusesAnUnknownCommandOrField) {
    EXPECT_EQ(complaint(lines({"", R"({"grab":{}})"})), "2:9: unknown field: grab");
    EXPECT_EQ(complaint(lines({R"({"pool":{"name":"gpu","size":3}})"})),
              "1:30: unknown field: size");
    EXPECT_EQ(complaint(lines({R"({"expect":{"grant":{"lease":3}}})"})),
              "1:29: unknown field: lease");
}

TEST(JournalReader, RefusesValuesOfTheWrongKindOrOutOfRange) {
    EXPECT_EQ(complaint(lines({R"({"pool":{"name":"gpu","slots":-1}})"})),
              R"(1:34: invalid number: "-1", constant does not fit [0; 4294967295])");
    EXPECT_EQ(
        complaint(lines({R"({"claim":{"session":"a","claim":"c","pool":"g","timeout_ns":-5}})"})),
        R"(1:64: invalid number: "-5", constant does not fit [0; 18446744073709551615])");
    EXPECT_EQ(complaint(lines({R"({"pool":{"name":"gpu","slots":1.5}})"})),
              "1:33: Cannot assign token starting with 'float constant' to value of <uint> type.");
    EXPECT_EQ(complaint(lines({R"({"pool":{"name":"gpu","kind":"magic"}})"})),
              "1:36: unknown enum value: magic");
    EXPECT_EQ(complaint(lines({R"({"expect_none":{"kind":"demmand"}})"})),
              "1:32: unknown enum value: demmand");
}

// In binary a field may hold any number. A byte of each journal is changed to 99: one of them is
// the value's, or its lower half.
TEST(JournalReader, RefusesANumberThatIsNoneOfAFieldsValues) {
    struct Case {
        std::string json;
        std::string complaint;
    };
    const std::string pool = R"({"pool":{"name":"gpu",)";
    const std::string claim = R"({"claim":{"session":"a","claim":"c","pool":"g",)";
    for (const Case& each : {
             Case{pool + R"("kind":"worker"}})", R"("pool.kind" is 99)"},
             Case{pool + R"("when_busy":"cold"}})", R"("pool.when_busy" is 99)"},
             Case{pool + R"("expiry":"strict"}})", R"("pool.expiry" is 99)"},
             Case{pool + R"("order":"account"}})", R"("pool.order" is 99)"},
             Case{claim + R"("when_busy":"cold"}})", R"("claim.when_busy" is 99)"},
             Case{claim + R"("refusal":"limit"}})", R"("claim.refusal" is -157)"},
             Case{R"({"report":{"pool":"g","state":"idle"}})", R"("report.state" is 99)"},
             Case{R"({"given":{"word":{"kind":"confirm"}}})", R"("given.word.kind" is 99)"},
             Case{R"({"expect_none":{"kind":"grant"}})", R"("expect_none.kind" is 99)"},
             Case{R"({"expect":{"end":{"outcome":"expired"}}})", R"("expect.end.outcome" is 99)"},
         }) {
        const std::string bytes = binary(lines({each.json}));
        size_t refused = 0;
        for (size_t place = 8; place < bytes.size(); ++place) {
            std::string changed = bytes;
            changed[place] = 99;
            const std::string said = complaint(changed, JournalForm::kBinary);
            if (said == "1:0: " + each.complaint + ", which is none of its values") ++refused;
        }
        EXPECT_EQ(refused, 1U) << each.complaint;
    }
    EXPECT_EQ(complaint(lines({R"({"pool":{"name":"gpu","kind":9}})"})),
              R"(1:0: "pool.kind" is 9, which is none of its values)");
}

// The schema's parser reads each of them, and not as it was meant.
TEST(JournalReader, RefusesWhatIsAlmostJson) {
    const auto pool = [](const std::string& fields) {
        return complaint(lines({R"({"pool":{"name":"gpu",)" + fields + "}}"}));
    };
    const std::string at = "1:0: \"pool.";
    EXPECT_EQ(pool(R"("slots":"1")"), at + R"(slots" is text, not a whole number)");
    EXPECT_EQ(pool(R"("release_is_ready":9)"),
              at + R"(release_is_ready" is a whole number, not true or false)");
    EXPECT_EQ(pool(R"("release_is_ready":"true")"),
              at + R"(release_is_ready" is text, not true or false)");
    EXPECT_EQ(pool(R"("expiry":"strict lazy")"),
              at + R"(expiry" is "strict lazy", which is none of its values)");
    EXPECT_EQ(pool(R"("slots":0x10)"),
              "1:32: syntax error while parsing object - invalid literal; last read: '0x'; "
              "expected '}'");
    EXPECT_EQ(complaint(lines({R"({'turn':{}})"})),
              "1:2: syntax error while parsing object key - invalid literal; last read: '{''; "
              "expected string literal");
    EXPECT_EQ(complaint(lines({R"({"turn":{} /* done */})"})),
              "1:12: syntax error while parsing object - invalid literal; last read: "
              "'\"turn\":{} /'; expected '}'");
    EXPECT_EQ(complaint(lines({R"({"expect":{"grant":{"claim":"a","claim":"b"}}})"})),
              R"(1:0: "claim" is given twice)");
    EXPECT_EQ(complaint(lines({R"({"expect":{"grant":{"slots":[0,true]}}})"})),
              "1:37: expecting: string constant instead got: true");
}

TEST(JournalReader, TakesAMarkOfTheByteOrderAtTheBeginningOnly) {
    const std::string mark = "\xef\xbb\xbf";
    EXPECT_EQ(complaint(mark + lines({"// a", kPool, kTurn})), "");
    EXPECT_EQ(complaint(lines({kPool, mark + kTurn})), "2:0: a byte order mark in the line");
}

TEST(JournalReader, ShowsNamesAsJsonHasThem) {
    EXPECT_EQ(complaint(lines({R"({"claim":{"session":"a\n\u001b[31m","claim":"c","pool":"g"}})"})),
              R"(1:0: there is no session "a\n\u001b[31m")");
    EXPECT_EQ(
        complaint(lines({R"({"pool":{"name":"g\nh","slots":1}})"})),
        R"(1:0: "g\nh": a pool's name has 1 to 63 letters, digits, ".", "_" and "-", a letter )"
        "first");
}

TEST(JournalReader, RefusesAttributesThatAreNoPairs) {
    EXPECT_EQ(complaint(lines({R"({"pool":{"name":"gpu","slots":1,"attributes_max":16,)"
                               R"("slot_attributes":[{"attributes":["device"]}]}})"})),
              R"(1:0: the attribute "device" is no "key=value")");
    EXPECT_EQ(complaint(lines({R"({"pool":{"name":"box","kind":"worker","attributes_max":16}})",
                               kAlice,
                               R"({"announce":{"session":"alice","slot":"s","pool":"box",)"
                               R"("attributes":["a=1","b"]}})"})),
              R"(3:0: the attribute "b" is no "key=value")");
}

TEST(JournalReader, RefusesAnExpectationOfNoneOrTwo) {
    EXPECT_EQ(complaint(lines({R"({"expect":{}})"})), R"(1:0: no decision in this "expect")");
    EXPECT_EQ(complaint(lines({R"({"expect":{"grant":{},"end":{}}})"})),
              R"(1:0: two decisions in one "expect": "grant" and "end")");
}

TEST(JournalReader, RefusesAMissingField) {
    EXPECT_EQ(complaint(lines({R"({"release":{"fence":1}})"})),
              "1:23: required field is missing: claim in Release");
    EXPECT_EQ(complaint(lines({R"({"claim":{"session":"alice","claim":"c1"}})"})),
              "1:0: the claim has no \"pool\"");
}

TEST(JournalReader, RefusesTwoCommandsInOneLineAndNone) {
    EXPECT_EQ(complaint(lines({R"({"turn":{},"drain":{}})"})),
              R"(1:0: two commands in one line: "drain" and "turn")");
    EXPECT_EQ(complaint(lines({R"({"turn":{},"turn":{}})"})),
              "1:21: field set more than once: turn");
    EXPECT_EQ(complaint(lines({kPool, "{}"})), "2:0: no command in this line");
}

TEST(JournalReader, NamesWhatThisVersionDoesNotSupport) {
    EXPECT_EQ(complaint(lines({kPool, R"({"mux":{"name":"m"}})"})),
              R"(2:0: "mux" is not supported by this version)");
    EXPECT_EQ(complaint(lines({R"({"claim":{"session":"alice","claim":"c","pool":"g",)"
                               R"("supervisor":true}})"})),
              R"(1:0: "claim.supervisor" is not supported by this version)");
    EXPECT_EQ(complaint(lines({R"({"pool":{"name":"g","account":"a"}})"})),
              R"(1:0: "pool.account" is not supported by this version)");
    EXPECT_EQ(complaint(lines({R"({"expect":{"park":{"slot":"s"}}})"})),
              R"(1:0: "expect.park" is not supported by this version)");
}

TEST(JournalReader, NamesWhatIsUnknown) {
    EXPECT_EQ(complaint(lines({kPool, R"({"cancel":{"claim":"c9"}})"})),
              R"(2:0: there is no claim "c9")");
    EXPECT_EQ(complaint(lines({R"({"session_dies":{"session":"eve"}})"})),
              R"(1:0: there is no session "eve")");
    EXPECT_EQ(complaint(lines({R"({"ready":{"slot":"s9"}})"})), R"(1:0: there is no slot "s9")");
    EXPECT_EQ(complaint(lines({R"({"drain":{"pool":"gpu"}})"})), R"(1:0: there is no pool "gpu")");
}

TEST(JournalReader, RefusesNamesThatAreTaken) {
    const std::string claim = R"({"claim":{"session":"alice","claim":"c1","pool":"gpu"}})";
    EXPECT_EQ(complaint(lines({kPool, kAlice, claim, claim})),
              R"(4:0: there is a claim "c1" already)");
    EXPECT_EQ(complaint(lines({kAlice, kAlice})), R"(2:0: there is a session "alice" already)");
    EXPECT_EQ(complaint(lines({kPool, kAlice, R"({"session_dies":{"session":"alice"}})", claim})),
              R"(4:0: the session "alice" has died)");
    const std::string outlived = R"({"holder_dies":{"session":"alice"}})";
    EXPECT_EQ(complaint(lines({kPool, kAlice, outlived, claim})),
              R"(4:0: the holder of session "alice" has died)");
    EXPECT_EQ(complaint(lines({kAlice, outlived, outlived})),
              R"(3:0: the holder of session "alice" has died)");
    EXPECT_EQ(complaint(lines({R"({"session":{"name":""}})"})), "1:0: a name is empty");
}

TEST(JournalReader, RefusesTimeThatGoesBackOrMovesInsideATurn) {
    EXPECT_EQ(complaint(lines({R"({"advance":{"to_ns":10}})", R"({"advance":{"to_ns":9}})"})),
              "2:0: time goes back: from 10 to 9");
    EXPECT_EQ(complaint(lines({kPool, R"({"advance":{"to_ns":10}})"})),
              "2:0: time moves between turns only: close the turn first");
    EXPECT_EQ(complaint(lines({R"({"advance":{}})"})),
              R"(1:0: "advance" has exactly one of "to_ns" and "by_ns")");
    EXPECT_EQ(complaint(lines({R"({"advance":{"to_ns":10}})",
                               R"({"advance":{"by_ns":18446744073709551615}})"})),
              "2:0: time passes its end");
}

// The core has that number for the turn's own time.
TEST(JournalReader, RefusesAnInstantBehindTheLastOne) {
    const std::string worker = R"({"pool":{"name":"w","kind":"worker","order":"account"}})";
    for (const char* command :
         {R"({"report":{"pool":"w","worker":"a","state":"idle","event_ns":18446744073709551615}})",
          R"({"pull":{"pool":"w","workers":[],"event_ns":18446744073709551615}})",
          R"({"unassign":{"pool":"w","claim":"c","worker":"a","event_ns":18446744073709551615}})",
          R"({"update_claim":{"claim":"c","event_ns":18446744073709551615}})",
          R"({"claim":{"session":"alice","claim":"c","pool":"w","event_ns":18446744073709551615}})",
          R"({"claim":{"session":"alice","claim":"c","pool":"w",)"
          R"("enqueued_ns":18446744073709551615}})"}) {
        EXPECT_EQ(complaint(lines({worker, kAlice, command})), "3:0: time passes its end");
    }
}

TEST(JournalReader, RefusesAnEndInsideATurn) {
    EXPECT_EQ(complaint(lines({kPool, kTurn, kAlice})),
              R"(3:0: the journal ends inside a turn: close it, {"turn":{}})");
}

TEST(JournalReader, RefusesLimitsThatComeLate) {
    EXPECT_EQ(complaint(lines({kPool, R"({"limits":{"slots":4}})"})),
              R"(2:0: "limits" is not the journal's first command)");
}

TEST(JournalReader, RefusesBytesThatAreGivenTwiceAndKeysThatAreTooLong) {
    EXPECT_EQ(complaint(lines({kPool,
                               kAlice,
                               R"({"claim":{"session":"alice","claim":"c","pool":"gpu",)"
                               R"("payload":"x","payload_size":3}})"})),
              "3:0: the bytes are given twice");
    EXPECT_EQ(complaint(lines({kPool,
                               kAlice,
                               R"({"claim":{"session":"alice","claim":"c","pool":"gpu",)"
                               R"("key":"12345678901234567"}})"})),
              R"(3:0: "key" is longer than 16 bytes)");
}

TEST(JournalReader, CarriesTheSchedulersWordOnAPoolThatCannotBe) {
    const std::string said = complaint(lines({R"({"pool":{"name":"gpu","units_max":300}})"}));
    EXPECT_TRUE(said.starts_with("1:0: pool 'gpu': ")) << said;
}

TEST(JournalReader, ReadsWhatItWroteInBinary) {
    const std::string json = lines({"// lost", kPool, kAlice, kTurn});
    const std::string bytes = binary(json);
    EXPECT_EQ(bytes.substr(0, 4), "DJN2");
    EXPECT_EQ(complaint(bytes), "");
    JournalReader reader(bytes, JournalForm::kBinary);
    EXPECT_EQ(journal_bytes(reader, JournalForm::kJson),
              "{\"pool\": {\"name\": \"gpu\",\"slots\": 1}}\n"
              "{\"session\": {\"name\": \"alice\"}}\n"
              "{\"turn\": {}}\n");
}

TEST(JournalReader, RefusesABinaryJournalOfAnotherVersion) {
    EXPECT_EQ(complaint("DJN1" + binary(lines({kPool})).substr(4)),
              "1:0: it has version 1, this program reads 2");
}

TEST(JournalReader, NamesTheBufferAtWhichABinaryJournalBreaks) {
    const std::string bytes = binary(lines({kPool, kAlice, kTurn}));
    const std::string cut = complaint(bytes.substr(0, bytes.size() - 1));
    EXPECT_TRUE(cut.starts_with("3:0: the journal ends inside a command: ")) << cut;
    EXPECT_EQ(complaint(bytes + "\x01"), "4:0: the journal ends inside a size");
    EXPECT_EQ(complaint(lines({kPool}), JournalForm::kBinary),
              R"(1:0: not a binary journal: it does not begin with "DJN2")");
    std::string torn = bytes;
    for (size_t place = 8; place < 24; ++place)
        torn[place] = '\x7f';
    EXPECT_EQ(complaint(torn), "1:0: not a command");
}

// A vector that begins four bytes further on: its length is then half of its first number.
TEST(JournalReader, RefusesABinaryJournalWhoseNumbersAreOutOfAlignment) {
    std::string bytes =
        binary(lines({R"({"account":{"name":"a","rate_micros":[1,0,0,0]}})", kTurn}));
    ASSERT_EQ(complaint(bytes), "");
    const auto* line = flatbuffers::GetRoot<flatbuffers::Table>(bytes.data() + 8);
    const auto* account = line->GetPointer<const flatbuffers::Table*>(journal::Line::VT_ACCOUNT);
    const auto* field = account->GetAddressOf(journal::Account::VT_RATE_MICROS);
    ASSERT_NE(field, nullptr);
    const auto place = static_cast<size_t>(reinterpret_cast<const char*>(field) - bytes.data());
    bytes[place] = static_cast<char>(bytes[place] + 4);
    EXPECT_EQ(complaint(bytes), "1:0: not a command");
}

TEST(JournalReader, RefusesMoreThanMemoryCanHold) {
    EXPECT_EQ(
        complaint(lines({R"({"pool":{"name":"gpu","slots":4000000000}})"})),
        "1:0: with this line the journal needs 1464849MiB of rows, more than 512MiB: --memory-max "
        "SIZE allows more");
    EXPECT_EQ(
        complaint(lines({kPool, "", kAlice, R"({"pool":{"name":"b","slots":4000000000}})"})),
        "4:0: with this line the journal needs 1464849MiB of rows, more than 512MiB: --memory-max "
        "SIZE allows more");
    EXPECT_EQ(complaint(lines({kPool,
                               kAlice,
                               R"({"claim":{"session":"alice","claim":"c","pool":"gpu",)"
                               R"("payload_size":1048577}})"})),
              R"(3:0: "payload_size" is over 1048576)");
}

// Whatever byte is wrong, reading ends: in an error, or in commands that are well formed.
TEST(JournalReader, SurvivesEveryChangedByteOfABinaryJournal) {
    const std::string bytes =
        binary(lines({kPool,
                      kAlice,
                      R"({"claim":{"session":"alice","claim":"c1","pool":"gpu","payload":"x"}})",
                      kTurn}));
    size_t refused = 0;
    size_t tried = 0;
    for (size_t place = 4; place < bytes.size(); place += tests::one_of() | 1, ++tried) {
        std::string changed = bytes;
        changed[place] = static_cast<char>(changed[place] ^ 0x81);
        JournalReader reader(changed, JournalForm::kBinary);
        try {
            journal_bytes(reader, JournalForm::kJson);
        } catch (const JournalError&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, tried / 2);
}

}  // namespace
}  // namespace dibs::ctl
