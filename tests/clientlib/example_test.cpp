// tests/clientlib/example_test.cpp -- the program on top of dibs.h, as it was cut out of there and
// compiled as C, runs.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>

#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

struct Finished {
    std::string output;
    int status;
};

Finished run_example(const std::string& socket) {
    const std::string command = "DIBS_SOCKET=" + socket + " " + DIBS_EXAMPLE + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::string output;
    std::array<char, 256> part = {};
    while (fgets(part.data(), part.size(), pipe) != nullptr)
        output += part.data();
    return {output, pclose(pipe)};
}

TEST(Example, ClaimsADeviceAndGivesItBack) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        if (entry.op != Op::kClaim) return session.result(entry);
        const std::string attributes("device=3", 9);
        session.grant(entry, 1, 1, 0, session.write_room({{attributes, ""}}));
    });
    const Finished run = run_example(broker.path());
    EXPECT_EQ(run.output, "device 3 is mine\n");
    EXPECT_EQ(run.status, 0);
    broker.wait_for(3);
    const std::vector<Submission> seen = broker.seen();
    EXPECT_EQ(seen[1].op, Op::kRelease);
    EXPECT_EQ(seen[2].op, Op::kClose);
}

TEST(Example, SaysWhoHoldsTheDevice) {
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
    EXPECT_EQ(run_example(broker.path()).output, "expired (ok), held by process 4711\n");
}

TEST(Example, SaysThatThereIsNoBroker) {
    const Finished run = run_example("/tmp/dibs-there-is-no-such-socket");
    EXPECT_EQ(run.output, "no session: no broker listens at the socket or answers in time\n");
    EXPECT_NE(run.status, 0);
}

}  // namespace
}  // namespace dibs::test
