// tests/clientlib/example_test.cpp -- the programs on top of dibs.h and dibs.hpp, as they were cut
// out of there and compiled as C and as C++17, run.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <array>
#include <cstdio>

#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

struct Finished {
    std::string output;
    int status;
};

Finished run(const std::string& program, const std::string& socket) {
    const std::string command = "DIBS_SOCKET=" + socket + " " + program + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::string output;
    std::array<char, 256> part = {};
    while (fgets(part.data(), part.size(), pipe) != nullptr)
        output += part.data();
    return {output, pclose(pipe)};
}

struct Program {
    const char* name;
    const char* path;
    const char* target;
};

class Example : public testing::TestWithParam<Program> {
  protected:
    // A broker would wait for ever for a program that is not there.
    void SetUp() override {
        ASSERT_EQ(access(GetParam().path, X_OK), 0)
            << GetParam().path << " is not built: scripts/build FOLDER " << GetParam().target;
    }
};

TEST_P(Example, ClaimsADeviceAndGivesItBack) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        if (entry.op != Op::kClaim) return session.result(entry);
        const std::string attributes("device=3", 9);
        session.grant(entry, 1, 1, 0, session.write_room({{attributes, ""}}));
    });
    const Finished program = run(GetParam().path, broker.path());
    ASSERT_EQ(program.output, "device 3 is mine\n");
    ASSERT_EQ(program.status, 0);
    broker.wait_for(3);
    const std::vector<Submission> seen = broker.seen();
    EXPECT_EQ(seen[1].op, Op::kRelease);
    EXPECT_EQ(seen[2].op, Op::kClose);
}

TEST_P(Example, SaysWhoHoldsTheDevice) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        if (entry.op != Op::kClaim) return session.result(entry);
        shm::Completion completion;
        completion.user_data = entry.user_data;
        completion.kind = shm::CompletionKind::kClaim;
        completion.outcome = Outcome::kExpired;
        completion.tag = entry.tag;
        shm::set_holder(completion, {1000, 4711, 5, 12});
        session.complete(completion);
    });
    const std::string expected = GetParam().name == std::string("Cpp")
                                     ? "expired; held by process 4711 of user 1000 for 0 ms\n"
                                     : "expired (ok), held by process 4711\n";
    EXPECT_EQ(run(GetParam().path, broker.path()).output, expected);
}

TEST_P(Example, SaysThatThereIsNoBroker) {
    const Finished program = run(GetParam().path, "/tmp/dibs-there-is-no-such-socket");
    EXPECT_EQ(program.output, "no session: no broker listens at the socket or answers in time\n");
    EXPECT_NE(program.status, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Headers,
    Example,
    testing::Values(Program{"C", DIBS_EXAMPLE, "tests/clientlib/header_example"},
                    Program{"Cpp", DIBS_CPP_EXAMPLE, "tests/clientlib/header_cpp_example"}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace dibs::test
