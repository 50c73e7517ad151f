// tests/process/keeper_drain_test.cpp -- a drain outlives its broker, and so does an order to stop.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "broker/turn/clock.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/proc_text.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/tool.hpp"

namespace dibs::test {
namespace {

using shm::Reason;

const std::string kOfAnHour = std::string("drain_timeout = \"1h\"\n") + kCounted;
// Longer than this host has been up.
const std::string kOfAYear = std::string("drain_timeout = \"8760h\"\n") + kCounted;

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

std::string told(const KeptDibsd& dibsd, const std::vector<std::string>& words) {
    Tool tool(dibsd.socket(), words);
    EXPECT_EQ(tool.wait(), 0);
    return tool.rest();
}

// The order is pending in the broker when that dies: the keeper has heard it, nobody else.
void kill_with_the_order_unread(const KeptDibsd& dibsd, int passed_on = SIGTERM) {
    const pid_t broker = dibsd.broker();
    kill(broker, SIGSTOP);
    ASSERT_TRUE(is_stopped(broker));
    kill(dibsd.keeper(), SIGTERM);
    while (!is_pending(broker, passed_on))
        sched_yield();
    dibsd.kill_broker();
}

// Has one of two slots.
class Holder : public RawClient {
  public:
    explicit Holder(const KeptDibsd& dibsd) : RawClient(dibsd.socket()) {
        claim(1);
        granted_ = wait();
    }
    // Returns once the broker has heard of it: a claim of both slots does not wait any longer.
    void ask_to_stop(pid_t whom) {
        claim(2, 0, 2);
        kill(whom, SIGTERM);
        ASSERT_EQ(wait()->reason, Reason::kDraining);
    }
    // The broker can stop now.
    void let_go() {
        ASSERT_TRUE(granted_);
        release(*granted_);
    }

  private:
    std::optional<shm::Completion> granted_;
};

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
    Holder holder(dibsd);
    EXPECT_EQ(said(dibsd, {"drain", "--all"}), 0);
    kill(dibsd.keeper(), SIGTERM);
    while (RawClient(dibsd.socket()).attached())
        sched_yield();
    dibsd.kill_broker();
    await_epoch(witness, 5);
    EXPECT_FALSE(RawClient(dibsd.socket()).attached());
    holder.let_go();
    EXPECT_EQ(dibsd.wait(), 0);
}

// The keeper has heard it, the broker dies before it looks at its signals.
TEST(Takeover, StopsThoughItsBrokerNeverReadTheOrder) {
    const Folder folder;
    KeptDibsd dibsd(folder, kCounted);
    Holder holder(dibsd);
    kill_with_the_order_unread(dibsd);
    await_epoch(holder, 2);
    const RawClient late(dibsd.socket());
    EXPECT_EQ(late.farewell().code, shm::FarewellCode::kDraining);
    holder.let_go();
    EXPECT_EQ(dibsd.wait(), 0);
    EXPECT_EQ(holder.wait_end(), Reason::kDraining);
}

// Nothing is held, so there is nothing to wait for, and nobody whose word begins a turn.
TEST(Takeover, StopsAtOnceWhereNothingIsHeld) {
    const Folder folder;
    KeptDibsd dibsd(folder, kOfAnHour);
    kill_with_the_order_unread(dibsd);
    EXPECT_EQ(dibsd.wait(), 0);
}

// As pkill does: each process has one, and the keeper passes its own on.
TEST(Stopping, IsAskedForOnceByWhoeverSignalsBoth) {
    const Folder folder;
    KeptDibsd dibsd(folder, kOfAnHour);
    Holder holder(dibsd);
    const pid_t broker = dibsd.broker();
    holder.ask_to_stop(broker);
    kill(broker, SIGSTOP);
    ASSERT_TRUE(is_stopped(broker));
    kill(dibsd.keeper(), SIGTERM);
    while (!is_pending(broker, SIGTERM))
        sched_yield();
    kill(broker, SIGCONT);
    while (is_pending(broker, SIGTERM))
        sched_yield();
    holder.claim(3);
    const auto refused = holder.wait();
    ASSERT_TRUE(refused) << "it has stopped at once";
    EXPECT_EQ(refused->reason, Reason::kDraining);
    EXPECT_EQ(said(dibsd, {"status"}), 0);  // behind whatever the signal has led to
    holder.claim(4);
    ASSERT_TRUE(holder.wait()) << "it has stopped at once";
    holder.let_go();
    EXPECT_EQ(dibsd.wait(), 0);
}

TEST(Takeover, DoesNotWaitWhereTheSecondOrderWasNeverRead) {
    const Folder folder;
    KeptDibsd dibsd(folder, kOfAYear);
    Holder holder(dibsd);
    holder.ask_to_stop(dibsd.keeper());
    kill_with_the_order_unread(dibsd, SIGINT);
    EXPECT_EQ(dibsd.wait(), 0);
    EXPECT_EQ(holder.wait_end(), Reason::kDraining);
}

// Two of one kind that are pending at once would be one.
TEST(Stopping, HearsTwoOrdersThoughItLooksLate) {
    const Folder folder;
    KeptDibsd dibsd(folder, kOfAnHour);
    Holder holder(dibsd);
    const pid_t broker = dibsd.broker();
    kill(broker, SIGSTOP);
    ASSERT_TRUE(is_stopped(broker));
    for (const int first : {SIGTERM, SIGINT}) {
        kill(dibsd.keeper(), SIGTERM);
        while (!is_pending(broker, first))
            sched_yield();
    }
    kill(broker, SIGCONT);
    EXPECT_EQ(dibsd.wait(), 0);
    EXPECT_EQ(holder.wait_end(), Reason::kDraining);
}

uint64_t left_ns(const KeptDibsd& dibsd) {
    const std::string status = told(dibsd, {"status", "-o", "json"});
    const std::string name = "\"stops_in_ns\":";
    const size_t at = status.find(name);
    return at == std::string::npos ? 0 : std::stoull(status.substr(at + name.size()));
}

// Whoever takes over waits no longer than the first would have.
TEST(Takeover, CountsFromTheOrder) {
    const Folder folder;
    KeptDibsd dibsd(folder, kOfAnHour);
    Holder holder(dibsd);
    holder.ask_to_stop(dibsd.keeper());
    const uint64_t before = left_ns(dibsd);
    EXPECT_GT(before, 0U);
    const uint64_t began = Clock::monotonic();
    dibsd.kill_broker();
    await_epoch(holder, 2);
    const uint64_t passed = Clock::monotonic() - began;
    const uint64_t behind = left_ns(dibsd);
    EXPECT_GT(behind, 0U);
    EXPECT_LE(behind + passed, before);
    holder.let_go();
    EXPECT_EQ(dibsd.wait(), 0);
}

// Both of them die, one behind the other, after the order.
TEST(Takeover, StopsThoughTheKeeperThatHeardTheOrderHasDied) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    Holder holder(dibsd);
    const pid_t first = dibsd.keeper();
    holder.ask_to_stop(first);
    dibsd.kill_keeper();
    const pid_t second = dibsd.keeper(first);
    const RawClient meanwhile(dibsd.socket());  // answered behind the start of the second
    EXPECT_EQ(meanwhile.farewell().code, shm::FarewellCode::kDraining);
    dibsd.kill_broker();
    await_epoch(holder, 2);
    EXPECT_EQ(RawClient(dibsd.socket()).farewell().code, shm::FarewellCode::kDraining);
    holder.let_go();
    EXPECT_EQ(holder.wait_end(), Reason::kDraining);
    while (!proc_text(second, "cmdline").empty())  // it ends, too
        sched_yield();
}

TEST(Stopping, IsLookedAtAndSteeredByWhoeverMay) {
    const Folder folder;
    KeptDibsd dibsd(folder, kCounted);
    Holder holder(dibsd);
    EXPECT_NE(told(dibsd, {"status", "-o", "json"}).find("\"stops_in_ns\":null"),
              std::string::npos);
    holder.ask_to_stop(dibsd.keeper());
    const std::string status = told(dibsd, {"status", "-o", "json"});
    EXPECT_NE(status.find("\"draining\":true"), std::string::npos) << status;
    EXPECT_EQ(status.find("\"stops_in_ns\":null"), std::string::npos) << status;
    EXPECT_NE(told(dibsd, {"ls", "leases", "-o", "jsonl"}).find("\"pool\":\"tokens\""),
              std::string::npos);
    Tool undrain(dibsd.socket(), {"undrain", "--all"});
    EXPECT_EQ(undrain.wait(), 6);
    EXPECT_EQ(undrain.error_rest(),
              "dibs undrain: the broker: it was asked to stop, which nothing takes back\n");
    Tool claim(dibsd.socket(), {"claim", "tokens"});
    EXPECT_EQ(claim.wait(), 75);
    EXPECT_EQ(claim.error_rest(),
              "dibs claim: no session with the broker at " + dibsd.socket() +
                  ": the broker is about to stop, once its leases have ended (dibs ls leases)\n");
    EXPECT_EQ(said(dibsd, {"exec", "tokens", "--conflict-exit", "9", "--", "true"}), 9);
    EXPECT_EQ(said(dibsd, {"release", "l1"}), 0);
    EXPECT_EQ(dibsd.wait(), 0);
}

}  // namespace
}  // namespace dibs::test
