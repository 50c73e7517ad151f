// tests/process/pool_sets_test.cpp -- claims of pool sets through libdibs, against a real dibsd.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <future>
#include <string>

#include "dibs/dibs.hpp"
#include "tests/process/child.hpp"
#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/tool.hpp"

namespace dibs::test {
namespace {

std::string one_slot(const std::string& name, const std::string& more = "") {
    return "[[pool]]\nname = \"" + name + "\"\nkind = \"counted\"\nslots = 1\nquantum = \"0s\"\n" +
           more;
}

std::string set_of(const std::string& members, const std::string& name = "any") {
    return "[[set]]\nname = \"" + name + "\"\npools = [" + members + "]\n";
}

std::string two_pools() {
    return one_slot("a") + one_slot("b");
}

dibs_completion reaped(const Attached& client) {
    dibs_completion end = {};
    EXPECT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    return end;
}

void release(const Attached& client, const dibs_completion& granted) {
    EXPECT_EQ(dibs_release(client, &granted.lease, DIBS_FOREVER), DIBS_OK);
}

// Nothing is held of it, and no claim waits.
void await_rest(const Attached& client) {
    client.await([](const dibs_counters& now) {
        return now.idle == now.slots && now.leased == 0 && now.queued == 0 && now.reserved == 0;
    });
}

void await_waiting(const Attached& client, uint32_t claims) {
    client.await([&](const dibs_counters& now) { return now.queued == claims; });
}

// A session of its own that waits in the set.
std::future<dibs_completion> waiter(const Attached& client, int64_t timeout_ns = DIBS_FOREVER) {
    return std::async(std::launch::async, [&client, timeout_ns] {
        return client.claim_in_time(Attached::asking(timeout_ns));
    });
}

TEST(PoolSet, IsAskedInTheOrderOfItsMembers) {
    const Folder folder;
    const Dibsd dibsd(folder, two_pools() + set_of("\"b\", \"a\""));
    const Attached client(dibsd.socket(), "any");
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    EXPECT_NE(client.pool() & DIBS_POOL_SET, 0U);
    const dibs_completion first = client.claim();
    ASSERT_EQ(first.outcome, DIBS_GRANTED);
    EXPECT_EQ(first.pool, b.pool());
    const dibs_completion second = client.claim();
    ASSERT_EQ(second.outcome, DIBS_GRANTED);
    EXPECT_EQ(second.pool, a.pool());
    const dibs_completion none = client.claim_in_time(Attached::asking(DIBS_NOWAIT));
    EXPECT_EQ(none.outcome, DIBS_REJECTED);
    EXPECT_EQ(none.code, DIBS_EBUSY);
    EXPECT_EQ(none.pool, b.pool());
    EXPECT_EQ(none.holder.pid, static_cast<uint32_t>(getpid()));
    release(client, first);
    release(client, second);
    await_rest(a);
    await_rest(b);
}

TEST(PoolSet, WaitsInEachMemberAndTakesTheFirstGrant) {
    const Folder folder;
    const Dibsd dibsd(folder, two_pools() + set_of("\"a\", \"b\""));
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    const Attached client(dibsd.socket(), "any");
    auto waits = waiter(client);
    await_waiting(a, 1);
    await_waiting(b, 1);
    release(b, of_b);
    const dibs_completion granted = waits.get();
    ASSERT_EQ(granted.outcome, DIBS_GRANTED);
    EXPECT_EQ(granted.pool, b.pool());
    await_waiting(a, 0);
    release(a, of_a);
    await_rest(a);
    release(client, granted);
    await_rest(b);
}

// In each of them it has the place that its arrival there gives it.
TEST(PoolSet, IsNotOvertakenByClaimsOfAMember) {
    const Folder folder;
    const Dibsd dibsd(folder, two_pools() + set_of("\"a\", \"b\""));
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    const Attached client(dibsd.socket(), "any");
    auto waits = waiter(client);
    await_waiting(b, 1);
    const Attached later(dibsd.socket(), "b");
    later.submit();
    await_waiting(b, 2);
    release(b, of_b);
    const dibs_completion granted = waits.get();
    EXPECT_EQ(granted.pool, b.pool());
    release(client, granted);
    EXPECT_EQ(reaped(later).outcome, DIBS_GRANTED);
    release(a, of_a);
    await_rest(a);
}

TEST(PoolSet, GivesBackASecondGrant) {
    const Folder folder;
    const Dibsd dibsd(folder, two_pools() + set_of("\"a\", \"b\""));
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const Attached client(dibsd.socket(), "any");
    for (int round = 0; round < 50; ++round) {
        const dibs_completion of_a = a.claim();
        const dibs_completion of_b = b.claim_in_time(Attached::asking(DIBS_FOREVER));
        auto waits = waiter(client);
        await_waiting(a, 1);
        await_waiting(b, 1);
        // Both at once: the waiter may read both grants in one look.
        (void)dibs_release(a, &of_a.lease, DIBS_NOWAIT);
        (void)dibs_release(b, &of_b.lease, DIBS_NOWAIT);
        const dibs_completion granted = waits.get();
        ASSERT_EQ(granted.outcome, DIBS_GRANTED);
        await_rest(granted.pool == a.pool() ? b : a);
        release(client, granted);
        await_rest(a);
        await_rest(b);
    }
}

TEST(PoolSet, TellsAtItsDeadlineWhoHoldsTheFirstMember) {
    const Folder folder;
    const Dibsd dibsd(folder, two_pools() + set_of("\"a\", \"b\""));
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    const Attached client(dibsd.socket(), "any");
    const dibs_completion end = client.claim_in_time(Attached::asking(20 * DIBS_MILLISECOND));
    EXPECT_EQ(end.outcome, DIBS_EXPIRED);
    EXPECT_EQ(end.pool, a.pool());
    EXPECT_EQ(end.holder.claim, of_a.claim);
    await_waiting(a, 0);
    await_waiting(b, 0);
    // Where the broker does not say so, the library does.
    auto waits = waiter(client, 300 * DIBS_MILLISECOND);
    await_waiting(b, 1);
    dibsd.signal(SIGSTOP);
    const dibs_completion unsaid = waits.get();
    dibsd.signal(SIGCONT);
    EXPECT_EQ(unsaid.outcome, DIBS_EXPIRED);
    EXPECT_EQ(unsaid.pool, a.pool());
    EXPECT_EQ(unsaid.holder.claim, of_a.claim);
    await_waiting(a, 0);
    await_waiting(b, 0);
    release(a, of_a);
    release(b, of_b);
    await_rest(a);
    await_rest(b);
}

TEST(PoolSet, LeavesOutAMemberThatDoesNotLetClaimsWait) {
    const Folder folder;
    const Dibsd dibsd(
        folder, one_slot("a", "when_busy = \"reject\"\n") + one_slot("b") + set_of("\"a\", \"b\""));
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    const Attached client(dibsd.socket(), "any");
    auto waits = waiter(client);
    await_waiting(b, 1);
    EXPECT_EQ(a.counters().queued, 0U);
    release(b, of_b);
    EXPECT_EQ(waits.get().pool, b.pool());
    release(a, of_a);
}

TEST(PoolSet, GoesOnWithoutAMemberThatDrains) {
    const Folder folder;
    const Dibsd dibsd(folder, two_pools() + set_of("\"a\", \"b\""));
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    const Attached client(dibsd.socket(), "any");
    auto waits = waiter(client);
    await_waiting(a, 1);
    await_waiting(b, 1);
    EXPECT_EQ(Tool(dibsd.socket(), {"drain", "a"}).wait(), 0);
    await_waiting(a, 0);
    release(b, of_b);
    const dibs_completion granted = waits.get();
    EXPECT_EQ(granted.pool, b.pool());
    // It is not asked from here on; without any other the answer is its.
    auto none = waiter(client);
    await_waiting(b, 1);
    EXPECT_EQ(a.counters().queued, 0U);
    EXPECT_EQ(Tool(dibsd.socket(), {"drain", "b"}).wait(), 0);
    const dibs_completion end = none.get();
    EXPECT_EQ(end.outcome, DIBS_REJECTED);
    EXPECT_EQ(end.code, DIBS_EDRAINING);
    const dibs_completion again = client.claim();
    EXPECT_EQ(again.code, DIBS_EDRAINING);
    EXPECT_EQ(again.pool, b.pool());
    release(a, of_a);
    release(client, granted);
    await_rest(a);
    await_rest(b);
}

TEST(PoolSet, EndsWithOneOfItsClaimsThatIsCancelledFromOutside) {
    const Folder folder;
    const Dibsd dibsd(folder, two_pools() + set_of("\"a\", \"b\""));
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    const Attached client(dibsd.socket(), "any");
    auto waits = waiter(client);
    await_waiting(a, 1);
    await_waiting(b, 1);
    // Its tries have the numbers 3 and 4.
    EXPECT_EQ(Tool(dibsd.socket(), {"cancel", "b/c6"}).wait(), 0);
    const dibs_completion end = waits.get();
    EXPECT_EQ(end.outcome, DIBS_CANCELLED);
    EXPECT_EQ(end.code, DIBS_EREVOKED);
    await_waiting(a, 0);
    release(a, of_a);
    release(b, of_b);
    await_rest(a);
    await_rest(b);
}

// A key has one claim at a time.
TEST(PoolSet, WaitsWithAKeyInOneMember) {
    const Folder folder;
    const Dibsd dibsd(folder, two_pools() + set_of("\"a\", \"b\""));
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    const Attached client(dibsd.socket(), "any");
    auto waits = std::async(std::launch::async, [&client] {
        dibs_claim_options options = Attached::asking(DIBS_FOREVER);
        options.key[0] = 1;
        return client.claim_in_time(options);
    });
    await_waiting(a, 1);
    dibs_claim_options same = Attached::asking(DIBS_NOWAIT);
    same.key[0] = 1;
    EXPECT_EQ(b.claim_in_time(same).code, DIBS_EDUPLICATE);
    EXPECT_EQ(b.counters().queued, 0U);
    // The member drains: the next one is waited in.
    EXPECT_EQ(Tool(dibsd.socket(), {"drain", "a"}).wait(), 0);
    await_waiting(b, 1);
    release(b, of_b);
    const dibs_completion granted = waits.get();
    EXPECT_EQ(granted.pool, b.pool());
    release(client, granted);
    release(a, of_a);
    await_rest(a);
    await_rest(b);
}

TEST(PoolSet, LeavesNothingBehindAKilledClient) {
    const Folder folder;
    const Dibsd dibsd(folder, two_pools() + set_of("\"a\", \"b\""));
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    Child child([&](const Child&) {
        const Attached client(dibsd.socket(), "any");
        (void)client.claim();
    });
    await_waiting(a, 1);
    await_waiting(b, 1);
    child.kill();
    await_waiting(a, 0);
    await_waiting(b, 0);
    release(a, of_a);
    release(b, of_b);
    await_rest(a);
    await_rest(b);
}

// Has the broker read its file again; what it says of that is awaited.
void reload(const Folder& folder, const Dibsd& dibsd, const std::string& config) {
    (void)folder.write("dibsd.toml", strict_unless_said(config) + config);
    Tool tool(dibsd.socket(), {"reload"});
    EXPECT_EQ(tool.wait(), 0) << tool.error_rest();
}

TEST(PoolSet, HasOtherMembersWhileAClaimWaits) {
    const Folder folder;
    const std::string pools = two_pools() + one_slot("c");
    const Dibsd dibsd(folder, pools + set_of("\"a\", \"b\""));
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const Attached c(dibsd.socket(), "c");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    const dibs_completion of_c = c.claim();
    const Attached client(dibsd.socket(), "any");
    auto waits = waiter(client);
    await_waiting(a, 1);
    await_waiting(b, 1);
    reload(folder, dibsd, pools + set_of("\"c\", \"b\""));
    await_waiting(c, 1);
    await_waiting(a, 0);
    EXPECT_EQ(b.counters().queued, 1U);
    release(a, of_a);
    await_rest(a);
    release(c, of_c);
    const dibs_completion granted = waits.get();
    EXPECT_EQ(granted.pool, c.pool());
    const Attached other(dibsd.socket(), "any");
    EXPECT_EQ(other.pool(), client.pool());  // whatever its members are
    release(client, granted);
    release(b, of_b);
    await_rest(b);
    await_rest(c);
}

TEST(PoolSet, IsUnknownOnceItIsRemoved) {
    const Folder folder;
    const Dibsd dibsd(folder, two_pools() + set_of("\"a\""));
    const Attached a(dibsd.socket(), "a");
    const dibs_completion of_a = a.claim();
    const Attached client(dibsd.socket(), "any");
    auto waits = waiter(client);
    await_waiting(a, 1);
    // Its row is another set's in the end: its number is none of that one's.
    std::string sets;
    for (int i = 0; i < 16; ++i)
        sets += set_of("\"b\"", "s" + std::to_string(i));
    reload(folder, dibsd, two_pools() + sets);
    const dibs_completion end = waits.get();
    EXPECT_EQ(end.outcome, DIBS_REJECTED);
    EXPECT_EQ(end.code, DIBS_EPOOL);
    dibs_completion none = {};
    EXPECT_EQ(dibs_claim(client, client.pool(), nullptr, &none), DIBS_EPOOL);
    uint32_t number = 0;
    EXPECT_EQ(dibs_pool(client, "any", &number), DIBS_EPOOL);
    EXPECT_EQ(dibs_pool(client, "s15", &number), DIBS_OK);
    EXPECT_NE(number, client.pool());
    release(a, of_a);
    await_rest(a);
}

TEST(PoolSet, GoesOnThroughATakeover) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools() + set_of("\"a\", \"b\""));
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    const Attached client(dibsd.socket(), "any");
    auto waits = waiter(client);
    await_waiting(a, 1);
    await_waiting(b, 1);
    dibsd.kill_broker();
    const Attached after(dibsd.socket(), "any");
    EXPECT_EQ(after.pool(), client.pool());
    EXPECT_EQ(a.counters().queued, 1U);
    release(b, of_b);
    const dibs_completion granted = waits.get();
    EXPECT_EQ(granted.pool, b.pool());
    release(client, granted);
    release(a, of_a);
    await_rest(a);
    await_rest(b);
}

TEST(PoolSet, TakesAParkedLeaseOfAMember) {
    const Folder folder;
    const Dibsd dibsd(folder,
                      "[[pool]]\nname = \"a\"\nkind = \"counted\"\nslots = 1\n" + one_slot("b") +
                          set_of("\"b\", \"a\""));
    const Attached client(dibsd.socket(), "any");
    const dibs_completion of_b = client.claim();
    const dibs_completion first = client.claim();
    ASSERT_EQ(dibs_release(client, &first.lease, DIBS_NOWAIT), DIBS_OK);
    const dibs_completion second = client.claim();
    EXPECT_EQ(second.lease.id, first.lease.id);
    EXPECT_EQ(second.lease.fence, first.lease.fence + 1);
    EXPECT_EQ(second.pool, first.pool);
    release(client, of_b);
}

// A member that it cannot wait in, for want of room, does not end the wait in the others.
TEST(PoolSet, WaitsWhereItHasRoomTo) {
    const Folder folder;
    const Dibsd dibsd(folder,
                      two_pools() + set_of("\"a\", \"b\"") +
                          "[[pool]]\nname = \"many\"\nkind = \"counted\"\nslots = 7\n");
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    dibs_connect_options few = {};
    few.leases_max = 8;
    const Attached client(dibsd.socket(), "any", few);
    uint32_t many = 0;
    ASSERT_EQ(dibs_pool(client, "many", &many), DIBS_OK);
    const dibs_claim_options plain = Attached::asking(DIBS_FOREVER);
    for (int i = 0; i < 7; ++i) {
        dibs_completion end = {};
        ASSERT_EQ(dibs_claim(client, many, &plain, &end), DIBS_OK);
    }
    auto waits = waiter(client);
    await_waiting(a, 1);
    release(a, of_a);
    const dibs_completion granted = waits.get();
    ASSERT_EQ(granted.outcome, DIBS_GRANTED);
    EXPECT_EQ(granted.pool, a.pool());
    release(client, granted);
    release(b, of_b);
    await_rest(a);
    await_rest(b);
}

TEST(PoolSet, IsClaimedInCppByItsName) {
    const Folder folder;
    const Dibsd dibsd(folder, two_pools() + set_of("\"b\", \"a\""));
    ConnectOptions options;
    options.socket_path = dibsd.socket().c_str();
    auto session = Session::connect(options);
    ASSERT_TRUE(session);
    auto first = session->claim("any");
    auto second = session->claim("any");
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->pool(), *session->pool("b"));
    EXPECT_EQ(second->pool(), *session->pool("a"));
    Lease moved = std::move(*first);
    EXPECT_EQ(moved.pool(), *session->pool("b"));
    EXPECT_TRUE(moved.release(std::chrono::seconds(5)));
}

TEST(PoolSet, IsForClaimsAlone) {
    const Folder folder;
    const Dibsd dibsd(folder, two_pools() + set_of("\"a\", \"b\""));
    const Attached client(dibsd.socket(), "any");
    dibs_op op = {};
    op.size = sizeof op;
    op.kind = DIBS_OP_CLAIM;
    op.pool = client.pool();
    EXPECT_EQ(dibs_submit(client, &op, 1), DIBS_EPOOL);
    dibs_pool_limits limits = {};
    limits.size = sizeof limits;
    EXPECT_EQ(dibs_describe(client, client.pool(), &limits), DIBS_EPOOL);
    dibs_counters counters = {};
    counters.size = sizeof counters;
    EXPECT_EQ(dibs_snapshot(client, client.pool(), &counters), DIBS_EPOOL);
    dibs_totals totals = {};
    totals.size = sizeof totals;
    EXPECT_EQ(dibs_pool_totals(client, client.pool(), &totals), DIBS_EPOOL);
    dibs_latency latency = {};
    latency.size = sizeof latency;
    EXPECT_EQ(dibs_pool_latency(client, client.pool(), &latency), DIBS_EPOOL);
    dibs_announce_options announce = {};
    announce.size = sizeof announce;
    uint64_t slot = 0;
    EXPECT_EQ(dibs_announce(client, client.pool(), &announce, DIBS_SECOND, &slot), DIBS_EPOOL);
}

}  // namespace
}  // namespace dibs::test
