// tests/demo/workload_test.cpp -- from a file or a seed to rows that fit a pool.
// SPDX-License-Identifier: Apache-2.0
#include "demo/workload.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>
#include <string>

#include "demo/private_broker.hpp"

namespace dibs::ctl::demo {
namespace {

class Workloads : public testing::Test {
  protected:
    Options options_for(const std::string& name, const std::string& text) {
        Options options;
        options.trace = folder_.path() + "/" + name;
        std::ofstream(options.trace) << text;
        return options;
    }

    TemporaryFolder folder_;
};

std::string refusal(const Options& options) {
    try {
        check_playable(load_workload(options));
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "none";
}

const char* const kJobs =
    "; MaxProcs: 16\n"
    "1 0 0 60 16 -1 -1 16 60 -1 1 3 1 -1 1 -1 -1 -1\n"
    "2 10 0 -1 8 -1 -1 8 60 -1 1 3 1 -1 1 -1 -1 -1\n"
    "3 20 0 30 17 -1 -1 17 60 -1 1 4 1 -1 1 -1 -1 -1\n"
    "4 120 0 30 1 -1 -1 1 60 -1 1 4 1 -1 1 -1 -1 -1\n";

TEST_F(Workloads, TakeThePoolFromAnSwfFilesHead) {
    const Workload workload = load_workload(options_for("a.swf", kJobs));
    EXPECT_EQ(workload.shape, PoolShape::kCounted);
    EXPECT_EQ(workload.slots, 16U);
    ASSERT_EQ(workload.trace.rows.size(), 2U);
    EXPECT_EQ(workload.trace.rows[0].hold_ns, 30'000'000'000U);
    EXPECT_EQ(workload.trace.rows[1].arrival_ns, 60'000'000'000U);
    EXPECT_EQ(workload.work_ns, 16 * 30'000'000'000ULL + 15'000'000'000ULL);
    EXPECT_EQ(describe_broken(workload.trace, 10),
              "line 3: run time is -1 (unknown)\n"
              "line 4: wants 17 units, at most 16 can be had\n");
    EXPECT_EQ(describe_broken(workload.trace, 1),
              "line 3: run time is -1 (unknown)\n... and 1 more\n");
    EXPECT_EQ(refusal(options_for("a.swf", kJobs)), "none");
}

TEST_F(Workloads, TakeA240UnitPoolWhereAnSwfFileSaysNothing) {
    const std::string text = kJobs;
    const Workload workload = load_workload(options_for("a.swf", text.substr(text.find('\n') + 1)));
    EXPECT_EQ(workload.slots, 240U);
}

TEST_F(Workloads, TakeEightWorkersForCsv) {
    const Workload workload = load_workload(options_for("a.csv", "arrival_s,hold_s\n0,1\n2,1\n"));
    EXPECT_EQ(workload.shape, PoolShape::kWorkers);
    EXPECT_EQ(workload.slots, 8U);
}

TEST_F(Workloads, FollowTheOptions) {
    Options options = options_for("a.csv", "0,1,3\n2,1\n");
    options.format = TraceFormat::kGeneric;
    options.shape = PoolShape::kCounted;
    options.slots = 2;
    options.span_ns = 1'000'000'000;
    const Workload workload = load_workload(options);
    EXPECT_EQ(workload.shape, PoolShape::kCounted);
    ASSERT_EQ(workload.trace.rows.size(), 1U);
    EXPECT_EQ(workload.trace.broken.size(), 1U);
}

TEST_F(Workloads, AreGeneratedWithoutAFile) {
    Options options;
    options.generator.claims = 50;
    const Workload workload = load_workload(options);
    EXPECT_EQ(workload.trace.rows.size(), 50U);
    EXPECT_EQ(workload.slots, 8U);
    EXPECT_NE(workload.name.find("--claims 50"), std::string::npos);
}

TEST_F(Workloads, SayWhyTheyCannotBePlayed) {
    Options missing;
    missing.trace = folder_.path() + "/nothing.csv";
    EXPECT_EQ(refusal(missing), "cannot read " + missing.trace + ": No such file or directory");
    EXPECT_NE(refusal(options_for("b.csv", "a,b\n1,2\n")).find("no format is recognised"),
              std::string::npos);
    EXPECT_EQ(refusal(options_for("c.csv", "arrival_s,hold_s\nx,1\n")),
              "there is no row that can be played");
    EXPECT_EQ(refusal(options_for("d.csv", "arrival_s,hold_s\n0,100\n0.001,1\n")),
              "scaled, the longest hold time is 6000000.00 s; with a smaller --seconds it is "
              "shorter");
    EXPECT_EQ(refusal(options_for("e.swf", "; MaxProcs: 100000\n")),
              "the trace's machine has 100000 processors; give a smaller pool by --slots");
    Options many;
    many.slots = 300;
    EXPECT_EQ(refusal(many), "300 worker processes are too many; --pool counted needs none");
    Options folder;
    folder.trace = folder_.path();
    EXPECT_NE(refusal(folder), "none");
}

}  // namespace
}  // namespace dibs::ctl::demo
