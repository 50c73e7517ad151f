// tests/broker/ctl/replay/replay_command_test.cpp -- `dibs` as a user meets it: exit codes, output.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

std::string slurp(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class DibsCommand : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / ("dibs-ctl-" + std::to_string(getpid()));
        std::filesystem::create_directory(folder_);
        std::ofstream(folder_ / "good.jsonl") << R"({"pool":{"name":"gpu","slots":1}}
{"session":{"name":"alice"}}
{"claim":{"session":"alice","claim":"c1","pool":"gpu"}}
{"turn":{}}
{"expect":{"grant":{"claim":"c1"}}}
)";
        std::ofstream(folder_ / "bad.jsonl") << R"({"pool":{"name":"gpu","slots":1}}
{"turn":{}}
{"drain":{"pool":"gpu"}}
{"grab":{}}
)";
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    // Runs `dibs ARGUMENTS` in the folder; keeps what it wrote.
    int run(const std::string& arguments, const std::string& input = "/dev/null") {
        const std::string command = "cd " + folder_.string() + " && " DIBS_PROGRAM " " + arguments +
                                    " >out 2>err <" + input;
        const int status = std::system(command.c_str());
        out_ = slurp(folder_ / "out");
        err_ = slurp(folder_ / "err");
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    std::filesystem::path folder_;
    std::string out_;
    std::string err_;
};

constexpr const char* kGrant =
    R"({"grant":{"claim":"c1","session":"alice","pool":"gpu","slots":[0],"fence":1,"interval_ns":0}}
{"demand":{"pool":"gpu","queued":0,"oldest_wait_ns":0,"hit_permille":1000}}
)";

TEST_F(DibsCommand, ReplaysAJournalToStandardOutput) {
    EXPECT_EQ(run("replay good.jsonl"), 0);
    EXPECT_EQ(out_, kGrant);
    EXPECT_EQ(err_, "");
}

TEST_F(DibsCommand, ReplaysStandardInput) {
    EXPECT_EQ(run("replay -", "good.jsonl"), 0);
    EXPECT_EQ(out_, kGrant);
    EXPECT_EQ(run("replay -", "bad.jsonl"), 1);
    EXPECT_EQ(err_, "<stdin>:4:9: unknown field: grab\n");
}

TEST_F(DibsCommand, PrintsTheFinalStateAfterTheDecisions) {
    EXPECT_EQ(run("replay good.jsonl --final-state --turns"), 0);
    EXPECT_TRUE(out_.starts_with(std::string(R"({"turn":{"now_ns":0}})") + "\n" + kGrant)) << out_;
    EXPECT_NE(out_.find(R"({"lease":{"claim":"c1",)"), std::string::npos) << out_;
}

TEST_F(DibsCommand, PrintsEveryTurnThatOpens) {
    std::ofstream(folder_ / "timers.jsonl") << R"({"pool":{"name":"gpu","slots":1}}
{"session":{"name":"alice"}}
{"claim":{"session":"alice","claim":"c1","pool":"gpu"}}
{"claim":{"session":"alice","claim":"c2","pool":"gpu","timeout_ns":1000}}
{"turn":{}}
{"advance":{"to_ns":2000,"timers":true}}
{"turn":{}}
)";
    EXPECT_EQ(run("replay timers.jsonl --turns"), 0);
    std::string turns;
    for (size_t at = out_.find("{\"turn\""); at != std::string::npos;
         at = out_.find("{\"turn\"", at + 1)) {
        turns += out_.substr(at, out_.find('\n', at) + 1 - at);
    }
    EXPECT_EQ(turns,
              "{\"turn\":{\"now_ns\":0}}\n{\"turn\":{\"now_ns\":1001}}\n"
              "{\"turn\":{\"now_ns\":2000}}\n");
}

TEST_F(DibsCommand, RefusesMoreTagsThanASessionHas) {
    std::ofstream(folder_ / "tags.jsonl") << R"({"session":{"name":"c","tags_max":1025}}
{"turn":{}}
)";
    EXPECT_EQ(run("replay tags.jsonl"), 1);
    EXPECT_EQ(err_, "tags.jsonl:1: \"tags_max\" is 1025: it is 1 to 1024\n");
}

TEST_F(DibsCommand, SaysInLinesWhatDoesNotHold) {
    std::ofstream(folder_ / "wrong.jsonl") << R"({"pool":{"name":"gpu","slots":1}}
{"session":{"name":"alice"}}
{"claim":{"session":"alice","claim":"c1","pool":"gpu"}}
{"turn":{}}
{"expect":{"grant":{"fence":2}}}
)";
    EXPECT_EQ(run("replay --check wrong.jsonl"), 1);
    EXPECT_TRUE(err_.starts_with("wrong.jsonl:5: expected {\"grant\":{\"fence\":2}}\n  decided  "))
        << err_;
    EXPECT_TRUE(err_.ends_with("\n  grant.fence: expected 2, is 1\n")) << err_;
}

TEST_F(DibsCommand, ChecksExpectationsAndSaysHowManyHold) {
    EXPECT_EQ(run("replay --check good.jsonl good.jsonl"), 0);
    EXPECT_EQ(out_, "good.jsonl: 1 expectation holds\ngood.jsonl: 1 expectation holds\n");
}

TEST_F(DibsCommand, StopsAtABrokenLineAfterWhatWasDecidedBefore) {
    EXPECT_EQ(run("replay bad.jsonl"), 1);
    EXPECT_EQ(out_,
              R"({"demand":{"pool":"gpu","queued":0,"oldest_wait_ns":0,"hit_permille":0}})"
              "\n");
    EXPECT_EQ(err_, "bad.jsonl:4:9: unknown field: grab\n");
}

TEST_F(DibsCommand, DeletesNoPoolThatIsInUse) {
    const std::string used = slurp(folder_ / "good.jsonl");
    std::ofstream(folder_ / "used.jsonl") << used << R"({"delete_pool":{"pool":"gpu"}})"
                                          << "\n";
    EXPECT_EQ(run("replay used.jsonl"), 1);
    EXPECT_EQ(out_, kGrant);
    EXPECT_EQ(err_, "used.jsonl:6: pool \"gpu\" is in use\n");
}

TEST_F(DibsCommand, StopsAtALineThatTheTurnsLogCannotHold) {
    const auto journal = [&](const char* name, int turn_every) {
        std::ofstream file(folder_ / name);
        file << R"({"pool":{"name":"w","kind":"worker"}})"
             << "\n"
             << R"({"session":{"name":"s"}})"
             << "\n";
        for (int slot = 1; slot <= 3000; ++slot) {
            file << R"({"announce":{"session":"s","pool":"w","slot":")" << slot << "\"}}\n";
            if (slot % turn_every == 0) file << "{\"turn\":{}}\n";
        }
    };
    journal("long.jsonl", 3000);
    EXPECT_EQ(run("replay long.jsonl"), 1);
    const std::string why =
        ": the turn holds more than its undo log can take back: close it earlier\n";
    ASSERT_TRUE(err_.starts_with("long.jsonl:")) << err_;
    EXPECT_TRUE(err_.ends_with(why)) << err_;
    const int line = std::stoi(err_.substr(std::string("long.jsonl:").size()));
    EXPECT_GT(line, 1000);
    EXPECT_LT(line, 3000);
    journal("short.jsonl", 500);
    EXPECT_EQ(run("replay short.jsonl"), 0) << err_;
}

TEST_F(DibsCommand, ConvertsThereAndBackWithoutChangingADecision) {
    EXPECT_EQ(run("replay good.jsonl --to-binary good.bin"), 0);
    EXPECT_EQ(slurp(folder_ / "good.bin").substr(0, 4), "DJN2");
    EXPECT_EQ(run("replay good.bin"), 0);
    EXPECT_EQ(out_, kGrant);
    EXPECT_EQ(run("replay good.bin --to-json again.jsonl"), 0);
    EXPECT_EQ(run("replay again.jsonl"), 0);
    EXPECT_EQ(out_, kGrant);
    EXPECT_EQ(run("replay --binary good.jsonl"), 1);
    EXPECT_EQ(err_, "good.jsonl:1: not a binary journal: it does not begin with \"DJN2\"\n");
}

TEST_F(DibsCommand, SaysWhatItCannotReadOrWrite) {
    EXPECT_EQ(run("replay nowhere.jsonl"), 1);
    EXPECT_EQ(err_, "dibs replay: nowhere.jsonl: No such file or directory\n");
    EXPECT_EQ(run("replay ."), 1);
    EXPECT_EQ(err_, "dibs replay: .: is a directory\n");
    EXPECT_EQ(run("replay good.jsonl --to-binary no/where"), 1);
    EXPECT_EQ(err_, "dibs replay: no/where: No such file or directory\n");
}

TEST_F(DibsCommand, TellsWrongUsageFromAFailure) {
    EXPECT_EQ(run(""), 2);
    EXPECT_EQ(run("grab"), 2);
    EXPECT_EQ(err_.substr(0, err_.find('\n')), "dibs: there is no subcommand \"grab\"");
    EXPECT_EQ(run("replay"), 2);
    EXPECT_EQ(run("replay --frobnicate good.jsonl"), 2);
    EXPECT_EQ(run("replay good.jsonl good.jsonl"), 2);
    EXPECT_EQ(err_, "dibs replay: several journals can only be checked\n");
}

TEST_F(DibsCommand, HelpsOnStandardOutput) {
    EXPECT_EQ(run("--help"), 0);
    EXPECT_NE(out_.find("replay"), std::string::npos);
    EXPECT_EQ(run("replay --help"), 0);
    EXPECT_NE(out_.find("--final-state"), std::string::npos);
    EXPECT_EQ(run("version"), 0);
    EXPECT_TRUE(out_.starts_with("dibs 0.1.0, layout ")) << out_;
}

}  // namespace
