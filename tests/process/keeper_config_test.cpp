// tests/process/keeper_config_test.cpp -- takeovers beside a file that is broken by now.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "tests/process/child.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {
namespace {

using shm::Reason;

const char* const kBroken = "nonsense = 1\n";

// Two pools, and those that this user may claim of.
std::string two_pools(const std::string& allowed) {
    return "[[pool]]\nname = \"one\"\nkind = \"counted\"\nslots = 1\n"
           "[[pool]]\nname = \"two\"\nkind = \"counted\"\nslots = 1\n"
           "[[policy]]\nuser = " +
           std::to_string(getuid()) + "\npools = [" + allowed + "]\n";
}

// What a new session's claim of the second pool comes to.
Reason claim_of_two(const KeptDibsd& dibsd) {
    RawClient client(dibsd.socket());
    client.claim(1, 1);
    const auto end = client.wait();
    if (end->reason == Reason::kOk) {
        client.release(*end);
        (void)client.wait();
    }
    return end->reason;
}

TEST(TakeoverBesideABrokenFile, KeepsThePolicyThatWasInForce) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools("\"one\", \"two\""));
    EXPECT_EQ(claim_of_two(dibsd), Reason::kOk);
    (void)folder.write("dibsd.toml", two_pools("\"one\""));
    kill(dibsd.keeper(), SIGHUP);
    while (claim_of_two(dibsd) != Reason::kNotAllowed)
        sched_yield();
    (void)folder.write("dibsd.toml", kBroken);
    for (int death = 0; death < 2; ++death) {
        dibsd.kill_broker();
        EXPECT_EQ(claim_of_two(dibsd), Reason::kNotAllowed) << death;
    }
}

// The next keeper has it from the broker.
TEST(TakeoverBesideABrokenFile, KeepsItThoughTheKeeperDiedBefore) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools("\"one\""));
    (void)folder.write("dibsd.toml", kBroken);
    const pid_t keeper = dibsd.keeper();
    kill_and_await(keeper, SIGKILL);
    EXPECT_NE(dibsd.keeper(keeper), keeper);
    RawClient client(dibsd.socket());
    dibsd.kill_broker();
    await_epoch(client, 2);
    EXPECT_EQ(claim_of_two(dibsd), Reason::kNotAllowed);
}

// A file that is good is what counts, though nobody has told the broker before it.
TEST(TakeoverBesideABrokenFile, IsNoneIfItIsGoodAgain) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools("\"one\""));
    (void)folder.write("dibsd.toml", kBroken);
    dibsd.kill_broker();
    EXPECT_EQ(claim_of_two(dibsd), Reason::kNotAllowed);
    (void)folder.write("dibsd.toml", two_pools("\"one\", \"two\""));
    dibsd.kill_broker();
    EXPECT_EQ(claim_of_two(dibsd), Reason::kOk);
}

}  // namespace
}  // namespace dibs::test
