// tests/demo/options_test.cpp -- the arguments of `dibs demo`.
// SPDX-License-Identifier: Apache-2.0
#include "demo/options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dibs::ctl::demo {
namespace {

std::string parse(std::vector<std::string> arguments, Options* options) {
    arguments.insert(arguments.begin(), "demo");
    std::vector<char*> argv;
    for (std::string& argument : arguments)
        argv.push_back(argument.data());
    argv.push_back(nullptr);
    return parse_options(static_cast<int>(arguments.size()), argv.data(), options);
}

std::string mistake(std::vector<std::string> arguments) {
    Options options;
    return parse(std::move(arguments), &options);
}

TEST(DemoOptions, HaveDefaults) {
    Options options;
    EXPECT_EQ(parse({}, &options), "");
    EXPECT_EQ(options.trace, "");
    EXPECT_EQ(options.span_ns, 60'000'000'000U);
    EXPECT_EQ(options.generator.claims, 5000U);
    EXPECT_FALSE(options.slots);
}

TEST(DemoOptions, TakeEveryParameter) {
    Options options;
    EXPECT_EQ(parse({"--trace=a.swf",
                     "--format",
                     "swf",
                     "--seconds",
                     "2.5",
                     "--slots",
                     "12",
                     "--pool",
                     "counted",
                     "--report",
                     "r.txt",
                     "--json",
                     "f.json",
                     "--seed",
                     "9",
                     "--tenants",
                     "3",
                     "--claims",
                     "100",
                     "--units",
                     "4",
                     "--burst",
                     "5",
                     "--load",
                     "90"},
                    &options),
              "");
    EXPECT_EQ(options.trace, "a.swf");
    EXPECT_EQ(options.format, TraceFormat::kSwf);
    EXPECT_EQ(options.span_ns, 2'500'000'000U);
    EXPECT_EQ(options.slots, 12U);
    EXPECT_EQ(options.shape, PoolShape::kCounted);
    EXPECT_EQ(options.report, "r.txt");
    EXPECT_EQ(options.json, "f.json");
    EXPECT_EQ(options.generator.seed, 9U);
    EXPECT_EQ(options.generator.tenants, 3U);
    EXPECT_EQ(options.generator.claims, 100U);
    EXPECT_EQ(options.generator.units_max, 4U);
    EXPECT_EQ(options.generator.burst, 5U);
    EXPECT_EQ(options.generator.load_percent, 90U);
}

TEST(DemoOptions, SayWhatIsWrong) {
    EXPECT_EQ(mistake({"--speed", "3"}), "there is no option --speed; did you mean --seed?");
    EXPECT_EQ(mistake({"--slots"}), "option \"--slots\" needs a value");
    EXPECT_EQ(mistake({"--slots", "0"}), "--slots \"0\": a number from 1 to 65536 is wanted");
    EXPECT_EQ(mistake({"--claims", "many"}),
              "--claims \"many\": a number from 1 to 1000000 is wanted");
    EXPECT_EQ(mistake({"--seconds", "0"}),
              "--seconds \"0\": a number of seconds from 0.001 to 86400 is wanted");
    EXPECT_EQ(mistake({"--pool", "gpu"}), "--pool \"gpu\": worker or counted is wanted");
    EXPECT_EQ(mistake({"--format", "xml"}),
              "--format \"xml\": swf, llm, functions or generic is wanted");
    EXPECT_EQ(mistake({"--trace", ""}), "--trace \"\": a file is wanted");
    EXPECT_EQ(mistake({"a.swf"}), "what is \"a.swf\"? A file is given by --trace");
}

}  // namespace
}  // namespace dibs::ctl::demo
