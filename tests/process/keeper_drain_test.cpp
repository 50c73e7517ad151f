// tests/process/keeper_drain_test.cpp -- a drain outlives its broker, and so does an order to stop.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <string>
#include <vector>

#include "tests/process/kept_dibsd.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/tool.hpp"

namespace dibs::test {
namespace {

using shm::Reason;

// The only claim of a session: why it was rejected, or that it was granted.
Reason claimed(const std::string& socket) {
    RawClient client(socket);
    client.claim(1);
    const auto end = client.wait();
    if (end->reason != Reason::kOk) return end->reason;
    client.release(*end);
    return client.wait()->reason;
}

int said(const KeptDibsd& dibsd, const std::vector<std::string>& words) {
    return Tool(dibsd.socket(), words).wait();
}

TEST(Takeover, KeepsWhatAnAdministratorHasDrained) {
    const Folder folder;
    KeptDibsd dibsd(folder, kCounted);
    const RawClient witness(dibsd.socket());
    EXPECT_EQ(said(dibsd, {"drain", "--all"}), 0);
    dibsd.kill_broker();
    await_epoch(witness, 2);
    EXPECT_EQ(claimed(dibsd.socket()), Reason::kDraining);
    kill(dibsd.keeper(), SIGHUP);
    kill(dibsd.keeper(), SIGUSR2);  // behind the other one
    await_epoch(witness, 3);
    EXPECT_EQ(claimed(dibsd.socket()), Reason::kDraining);
    EXPECT_EQ(said(dibsd, {"undrain", "--all"}), 0);
    EXPECT_EQ(claimed(dibsd.socket()), Reason::kOk);
    EXPECT_EQ(said(dibsd, {"drain", "tokens"}), 0);
    dibsd.kill_broker();
    await_epoch(witness, 4);
    EXPECT_EQ(claimed(dibsd.socket()), Reason::kDraining);
    EXPECT_EQ(said(dibsd, {"undrain", "tokens"}), 0);
    EXPECT_EQ(claimed(dibsd.socket()), Reason::kOk);
    // Asked to stop meanwhile, it stops, whoever takes over.
    RawClient holder(dibsd.socket());
    holder.claim(1);
    const auto granted = holder.wait();
    EXPECT_EQ(said(dibsd, {"drain", "--all"}), 0);
    kill(dibsd.keeper(), SIGTERM);
    while (connect_to(dibsd.socket()).valid())
        sched_yield();
    dibsd.kill_broker();
    await_epoch(witness, 5);
    EXPECT_FALSE(connect_to(dibsd.socket()).valid());
    holder.release(*granted);
    EXPECT_EQ(dibsd.wait(), 0);
}

}  // namespace
}  // namespace dibs::test
