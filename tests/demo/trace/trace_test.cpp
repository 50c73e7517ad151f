// tests/demo/trace/trace_test.cpp -- every format, and every way in which a line can be broken.
// SPDX-License-Identifier: Apache-2.0
#include "demo/trace/trace.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dibs::ctl::demo {
namespace {

// A line of the Standard Workload Format with these columns, the others plausible.
std::string swf(const std::string& submit,
                const std::string& run,
                const std::string& processors,
                const std::string& wanted = "4",
                const std::string& user = "5") {
    return "1 " + submit + " 10 " + run + " " + processors + " 55.9 -1 " + wanted + " 3600 -1 1 " +
           user + " 1 -1 1 -1 -1 -1\n";
}

// The reason for the only broken line of a trace.
std::string reason(const std::string& text, TraceFormat format) {
    const Trace trace = parse_trace(text, format);
    if (trace.broken.size() != 1) return std::to_string(trace.broken.size()) + " broken lines";
    return trace.broken.front().reason;
}

TEST(SwfTrace, TakesSubmitRunProcessorsAndUser) {
    const Trace trace = parse_trace("; Version: 2.2\n; MaxProcs: 240\n\n" + swf("100", "7", "30") +
                                        swf("90", "0", "8", "4", "6"),
                                    TraceFormat::kSwf);
    ASSERT_EQ(trace.rows.size(), 2U);
    EXPECT_TRUE(trace.broken.empty());
    EXPECT_EQ(trace.pool_units, 240U);
    EXPECT_EQ(trace.rows[0].line, 5U);
    EXPECT_EQ(trace.rows[0].arrival_ns, 0U);
    EXPECT_EQ(trace.rows[0].hold_ns, 0U);
    EXPECT_EQ(trace.rows[0].units, 8U);
    EXPECT_EQ(trace.tenants[trace.rows[0].tenant], "user 6");
    EXPECT_EQ(trace.rows[1].line, 4U);
    EXPECT_EQ(trace.rows[1].arrival_ns, 10'000'000'000U);
    EXPECT_EQ(trace.rows[1].hold_ns, 7'000'000'000U);
    EXPECT_EQ(trace.rows[1].units, 30U);
    EXPECT_EQ(trace.tenants[trace.rows[1].tenant], "user 5");
}

TEST(SwfTrace, FallsBackToTheProcessorsAskedFor) {
    const Trace trace = parse_trace(swf("0", "7", "-1", "12"), TraceFormat::kSwf);
    ASSERT_EQ(trace.rows.size(), 1U);
    EXPECT_EQ(trace.rows[0].units, 12U);
}

TEST(SwfTrace, KeepsAnUnknownUserAsATenant) {
    const Trace trace = parse_trace(swf("0", "7", "1", "1", "-1"), TraceFormat::kSwf);
    ASSERT_EQ(trace.rows.size(), 1U);
    EXPECT_EQ(trace.tenants[trace.rows[0].tenant], "unknown");
}

TEST(SwfTrace, SaysWhatIsWrongWithALine) {
    const auto why = [](const std::string& line) { return reason(line, TraceFormat::kSwf); };
    EXPECT_EQ(why("1 2 3 4\n"), "4 columns where 18 are needed");
    EXPECT_EQ(why(swf("0", "-1", "8")), "run time is -1 (unknown)");
    EXPECT_EQ(why(swf("0", "-7", "8")), "run time is -7");
    EXPECT_EQ(why(swf("0", "abc", "8")), "run time \"abc\" is not a number");
    EXPECT_EQ(why(swf("x", "7", "8")), "submit time \"x\" is not a number");
    EXPECT_EQ(why(swf("-1", "7", "8")), "submit time is -1");
    EXPECT_EQ(why(swf("0", "7", "0")), "zero processors");
    EXPECT_EQ(why(swf("0", "7", "-3")), "processors is -3");
    EXPECT_EQ(why(swf("0", "7", "2.5")), "processors \"2.5\" is not a number");
    EXPECT_EQ(why(swf("0", "7", "-1", "-1")),
              "processors and requested processors are both unknown");
    EXPECT_EQ(why(swf("0", "7", "-1", "0")), "zero processors");
    EXPECT_EQ(why(swf("0", "7", "8", "8", "bob")), "user \"bob\" is not a number");
    EXPECT_EQ(why(swf("0", "99999999999999", "8")), "run time \"99999999999999\" is not a number");
    EXPECT_EQ(why(swf("4600000000", "7", "8")), "arrival is out of range");
    EXPECT_EQ(why(swf("0", "4600000000", "8")), "hold time is out of range");
}

TEST(LlmTrace, TurnsTokensIntoHoldTime) {
    const Trace trace = parse_trace(
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        "2023-11-16 18:17:03.9799600,4808,10\r\n"
        "2023-11-16 18:17:04.0319600,0,0",
        TraceFormat::kLlm);
    ASSERT_EQ(trace.rows.size(), 2U);
    EXPECT_EQ(trace.rows[0].line, 2U);
    EXPECT_EQ(trace.rows[0].hold_ns, 1'402'000'000U);  // 4808 / 4 ms + 10 × 20 ms
    EXPECT_EQ(trace.rows[1].arrival_ns, 52'000'000U);
    EXPECT_EQ(trace.rows[1].hold_ns, 0U);
}

TEST(LlmTrace, SaysWhatIsWrongWithALine) {
    const auto why = [](const std::string& line) {
        return reason("TIMESTAMP,ContextTokens,GeneratedTokens\n" + line, TraceFormat::kLlm);
    };
    EXPECT_EQ(why("2023-11-16 18:17:03,5"), "2 columns, GeneratedTokens is missing");
    EXPECT_EQ(why("2023-11-16 18:17:03,5,"), "GeneratedTokens is missing");
    EXPECT_EQ(why("2023-11-16 18:17:03,many,1"), "ContextTokens \"many\" is not a number");
    EXPECT_EQ(why("2023-11-16 18:17:03,-5,1"), "ContextTokens is -5");
    EXPECT_EQ(why("2023-11-16 18:17:03,5,99999999"), "GeneratedTokens is 99999999");
    EXPECT_EQ(why("yesterday,5,1"), "TIMESTAMP \"yesterday\" is not a date and time");
    EXPECT_EQ(why("\x01\x02garbage"), "1 columns, ContextTokens is missing");
}

TEST(FunctionsTrace, ArrivesADurationBeforeItsEnd) {
    const Trace trace = parse_trace(
        "app,func,end_timestamp,duration\n"
        "a,f,57.25,57.0\n"
        "b,f,1.25,0.0\n",
        TraceFormat::kFunctions);
    ASSERT_EQ(trace.rows.size(), 2U);
    EXPECT_EQ(trace.rows[0].hold_ns, 57'000'000'000U);
    EXPECT_EQ(trace.rows[1].arrival_ns, 1'000'000'000U);
    EXPECT_EQ(trace.rows[1].hold_ns, 0U);
    EXPECT_EQ(trace.tenants, (std::vector<std::string>{"a", "b"}));
}

TEST(FunctionsTrace, PlaysWhatWasUnderWayWhenTheRecordingBegan) {
    const Trace trace =
        parse_trace("app,func,end_timestamp,duration\na,f,1,3\na,f,2,1\n", TraceFormat::kFunctions);
    ASSERT_EQ(trace.rows.size(), 2U);
    EXPECT_EQ(trace.rows[0].arrival_ns, 0U);
    EXPECT_EQ(trace.rows[1].arrival_ns, 3'000'000'000U);
}

TEST(FunctionsTrace, SaysWhatIsWrongWithALine) {
    const auto why = [](const std::string& line) {
        return reason("app,func,end_timestamp,duration\n" + line, TraceFormat::kFunctions);
    };
    EXPECT_EQ(why("a,f,10"), "3 columns, duration is missing");
    EXPECT_EQ(why("a,f,10,-0.5"), "duration is -0.5");
    EXPECT_EQ(why("a,f,,1"), "end_timestamp is missing");
    EXPECT_EQ(why("a,f,10,long"), "duration \"long\" is not a number");
    EXPECT_EQ(why(",f,10,1"), "app is missing");
}

TEST(GenericTrace, NeedsArrivalAndHoldOnly) {
    const Trace trace =
        parse_trace("# made by hand\narrival_s,hold_s\n1.5,2\n0.5,0.001\n", TraceFormat::kGeneric);
    ASSERT_EQ(trace.rows.size(), 2U);
    EXPECT_EQ(trace.rows[0].hold_ns, 1'000'000U);
    EXPECT_EQ(trace.rows[0].units, 1U);
    EXPECT_EQ(trace.rows[1].arrival_ns, 1'000'000'000U);
    EXPECT_EQ(trace.tenants, (std::vector<std::string>{"all"}));
}

TEST(GenericTrace, TakesUnitsAndTenantInAnyOrderOfColumns) {
    const Trace trace = parse_trace(
        "tenant, note, units, hold_s, arrival_s\n"
        "\"Smith, Jones\",x,3,2,0\n"
        ",,,2,1\n",
        TraceFormat::kGeneric);
    ASSERT_EQ(trace.rows.size(), 2U);
    EXPECT_EQ(trace.rows[0].units, 3U);
    EXPECT_EQ(trace.tenants, (std::vector<std::string>{"Smith, Jones", "all"}));
    EXPECT_EQ(trace.rows[1].units, 1U);
}

TEST(GenericTrace, TakesTheDocumentedOrderWithoutAHeader) {
    const Trace trace = parse_trace("0,1\n1,1,2,b\n", TraceFormat::kGeneric);
    ASSERT_EQ(trace.rows.size(), 2U);
    EXPECT_EQ(trace.rows[0].line, 1U);
    EXPECT_EQ(trace.rows[1].units, 2U);
}

TEST(GenericTrace, SaysWhatIsWrongWithALine) {
    const auto why = [](const std::string& line) {
        return reason("arrival_s,hold_s,units,tenant\n" + line, TraceFormat::kGeneric);
    };
    EXPECT_EQ(why("1"), "1 columns, hold_s is missing");
    EXPECT_EQ(why("x,1"), "arrival_s \"x\" is not a number");
    EXPECT_EQ(why("-2,1"), "arrival_s is -2");
    EXPECT_EQ(why("1,-1"), "hold_s is -1 (unknown)");
    EXPECT_EQ(why("1,1,0"), "zero processors");
    EXPECT_EQ(why("1,1,1.5"), "units \"1.5\" is not a number");
    EXPECT_EQ(why("1,1,99999999999"), "units \"99999999999\" is not a number");
    EXPECT_EQ(why("1,1,2000000000"), "processors is out of range");
    EXPECT_EQ(why("arrival_s,hold_s"), "arrival_s \"arrival_s\" is not a number");
    EXPECT_EQ(why(std::string("1,") + std::string(60, 'z')),
              "hold_s \"" + std::string(32, 'z') + "...\" is not a number");
    EXPECT_EQ(why("1,\x1b[31m"), "hold_s \"?[31m\" is not a number");
}

TEST(Trace, PlaysTheGoodLinesBetweenTheBrokenOnes) {
    const Trace trace =
        parse_trace("arrival_s,hold_s\n0,1\nbroken\n1,1\n2,\n3,1\n", TraceFormat::kGeneric);
    ASSERT_EQ(trace.rows.size(), 3U);
    ASSERT_EQ(trace.broken.size(), 2U);
    EXPECT_EQ(trace.broken[0].line, 3U);
    EXPECT_EQ(trace.broken[1].line, 5U);
    EXPECT_EQ(trace.rows[2].line, 6U);
}

TEST(Trace, OrdersRowsByArrivalThenLine) {
    const Trace trace =
        parse_trace("arrival_s,hold_s\n2,1\n1,1\n2,2\n1,2\n", TraceFormat::kGeneric);
    ASSERT_EQ(trace.rows.size(), 4U);
    EXPECT_EQ(trace.rows[0].line, 3U);
    EXPECT_EQ(trace.rows[1].line, 5U);
    EXPECT_EQ(trace.rows[2].line, 2U);
    EXPECT_EQ(trace.rows[3].line, 4U);
}

TEST(Trace, MovesRowsThatNoPoolCanServeToTheBrokenOnes) {
    Trace trace =
        parse_trace("arrival_s,hold_s,units\n0,1,8\n1,1,9\nbad\n2,1,300\n", TraceFormat::kGeneric);
    refuse_misfits(&trace, 8);
    ASSERT_EQ(trace.rows.size(), 1U);
    ASSERT_EQ(trace.broken.size(), 3U);
    EXPECT_EQ(trace.broken[0].line, 3U);
    EXPECT_EQ(trace.broken[0].reason, "wants 9 units, at most 8 can be had");
    EXPECT_EQ(trace.broken[1].line, 4U);
    EXPECT_EQ(trace.broken[2].line, 5U);
}

TEST(Trace, IsEmptyForAnEmptyText) {
    const Trace trace = parse_trace("", TraceFormat::kGeneric);
    EXPECT_TRUE(trace.rows.empty());
    EXPECT_TRUE(trace.broken.empty());
}

TEST(TraceFormat, IsToldByTheFirstLineThatSaysSomething) {
    EXPECT_EQ(detect_format("x", "; Version: 2\n1 2"), TraceFormat::kSwf);
    EXPECT_EQ(detect_format("x", "\xef\xbb\xbfTIMESTAMP,ContextTokens,GeneratedTokens\r\n"),
              TraceFormat::kLlm);
    EXPECT_EQ(detect_format("x", "app,func,end_timestamp,duration\n"), TraceFormat::kFunctions);
    EXPECT_EQ(detect_format("x", "# hello\n\nTenant,Hold_S,Arrival_S\n"), TraceFormat::kGeneric);
    EXPECT_EQ(detect_format("jobs.SWF", "1 0 0 5 1\n"), TraceFormat::kSwf);
    EXPECT_EQ(detect_format("jobs.csv", "a,b,c\n"), std::nullopt);
    EXPECT_EQ(detect_format("jobs", ""), std::nullopt);
}

TEST(TraceFormat, HasANameToGiveItBy) {
    for (const char* name : {"swf", "llm", "functions", "generic"}) {
        const auto format = format_by_name(name);
        ASSERT_TRUE(format) << name;
        EXPECT_EQ(format_name(*format), name);
    }
    EXPECT_EQ(format_by_name("csv"), std::nullopt);
}

}  // namespace
}  // namespace dibs::ctl::demo
