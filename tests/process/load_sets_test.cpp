// tests/process/load_sets_test.cpp -- claims of pool sets that are ranked by load, through libdibs,
// against a real dibsd.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <string>

#include "tests/process/child.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/parked.hpp"

namespace dibs::test {
namespace {

std::string counted(const std::string& name, uint32_t slots, const std::string& more = "") {
    return "[[pool]]\nname = \"" + name +
           "\"\nkind = \"counted\"\nslots = " + std::to_string(slots) + "\nquantum = \"0s\"\n" +
           more;
}

std::string by_load(const std::string& more = "") {
    return "[[set]]\nname = \"any\"\npools = [\"a\", \"b\"]\nrank = \"load\"\n" + more;
}

dibs_completion granted_in(const Attached& client, const Attached& pool) {
    const dibs_completion end = client.claim();
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
    EXPECT_EQ(end.pool, pool.pool());
    return end;
}

void release(const Attached& client, const dibs_completion& granted) {
    EXPECT_EQ(dibs_release(client, &granted.lease, DIBS_FOREVER), DIBS_OK);
}

void await_waiting(const Attached& pool, uint32_t claims) {
    pool.await([&](const dibs_counters& now) { return now.queued == claims; });
}

TEST(LoadSet, SendsEachClaimToThePoolWithMostIdleSlots) {
    const Folder folder;
    const KeptDibsd dibsd(folder, counted("a", 1) + counted("b", 3) + by_load());
    const Attached any(dibsd.socket(), "any");
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion first = granted_in(any, b);
    const dibs_completion second = granted_in(any, b);
    const dibs_completion third = granted_in(any, a);  // one each is left: the name decides
    const dibs_completion fourth = granted_in(any, b);
    release(any, second);
    const dibs_completion fifth = granted_in(any, b);
    for (const dibs_completion& each : {first, third, fourth, fifth})
        release(any, each);
}

// What those before it in the same turn are about to get is not idle.
TEST(LoadSet, CountsClaimsOfTheSameTurn) {
    const Folder folder;
    const KeptDibsd dibsd(folder, counted("a", 8) + counted("b", 8) + by_load());
    const Attached any(dibsd.socket(), "any");
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_claim_options plain = Attached::asking(DIBS_FOREVER);
    dibs_op ops[16] = {};
    for (dibs_op& op : ops) {
        op.size = sizeof op;
        op.kind = DIBS_OP_CLAIM;
        op.pool = any.pool();
        op.claim = &plain;
    }
    ASSERT_EQ(dibs_submit(any, ops, 16), 16);
    for (int each = 0; each < 16; ++each)
        EXPECT_EQ(reap_one(any).outcome, DIBS_GRANTED);
    for (const Attached* pool : {&a, &b})
        pool->await([](const dibs_counters& now) { return now.leased == 8; });
}

TEST(LoadSet, LetsAClaimWaitWhereItWasTaken) {
    const Folder folder;
    const KeptDibsd dibsd(folder, counted("a", 1) + counted("b", 1) + by_load());
    const Attached any(dibsd.socket(), "any");
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    any.submit();
    await_waiting(a, 1);
    release(b, of_b);
    release(b, granted_in(b, b));  // the slot of b is nobody's meanwhile
    EXPECT_EQ(a.counters().queued, 1U);
    release(a, of_a);
    const dibs_completion end = reap_one(any);
    EXPECT_EQ(end.pool, a.pool());
    release(any, end);
}

TEST(LoadSet, PassesAFullPoolOverUntilItHasCooledDown) {
    const Folder folder;
    const std::string narrow = "backlog_max = 1\n";
    const KeptDibsd dibsd(
        folder,
        counted("a", 1, narrow) + counted("b", 1, narrow) + by_load("cool_down = \"1h\"\n"));
    const Attached any(dibsd.socket(), "any");
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = a.claim();
    const dibs_completion of_b = b.claim();
    any.submit();
    await_waiting(a, 1);
    any.submit();
    await_waiting(b, 1);
    const dibs_completion full = any.claim();
    EXPECT_EQ(full.outcome, DIBS_REJECTED);
    EXPECT_EQ(full.code, DIBS_EBACKLOG);
    EXPECT_EQ(full.pool, a.pool());
    EXPECT_GT(full.retry_after_ns, 0);
    release(a, of_a);
    release(any, reap_one(any));
    // Saturated still, and yet the first: it has an idle slot.
    release(any, granted_in(any, a));
    release(b, of_b);
    release(any, reap_one(any));
}

TEST(LoadSet, TakesWhatIsParkedForIdle) {
    const Folder folder;
    const KeptDibsd dibsd(folder,
                          parking_pool("a", 1, "1h") + parking_pool("b", 1, "1h") + by_load());
    const Attached any(dibsd.socket(), "any");
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    // By name a would be the first. That b's is free no counter says yet, and the claim does not
    // wait.
    const dibs_lease held = take(a);
    put(b, take(b));
    const dibs_completion end = any.claim(Attached::asking(DIBS_NOWAIT));
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
    EXPECT_EQ(end.pool, b.pool());
    put(a, held);
}

TEST(LoadSet, KeepsItsClaimsWhenTheBrokerIsKilled) {
    const Folder folder;
    const KeptDibsd dibsd(folder, counted("a", 1) + counted("b", 1) + by_load());
    const Attached any(dibsd.socket(), "any");
    const Attached a(dibsd.socket(), "a");
    const Attached b(dibsd.socket(), "b");
    const dibs_completion of_a = granted_in(any, a);
    const dibs_completion of_b = granted_in(any, b);
    any.submit();
    await_waiting(a, 1);
    dibsd.kill_broker();
    release(any, of_a);
    const dibs_completion waited = reap_one(any);
    ASSERT_EQ(waited.outcome, DIBS_GRANTED);
    EXPECT_EQ(waited.pool, a.pool());
    release(any, of_b);
    release(any, granted_in(any, b));  // the next broker has its sets from the file
    release(any, waited);
    for (int round = 0; round < 5; ++round) {
        any.submit();
        dibsd.kill_broker();  // before, between or behind grant and completion
        const dibs_completion end = reap_one(any);
        ASSERT_EQ(end.outcome, DIBS_GRANTED);
        release(any, end);
    }
    for (const Attached* pool : {&a, &b})
        pool->await([](const dibs_counters& now) { return now.idle == 1 && now.queued == 0; });
}

TEST(LoadSet, HasNoFurtherPools) {
    const Folder folder;
    const KeptDibsd dibsd(folder, counted("a", 1) + counted("b", 1) + by_load());
    const Attached any(dibsd.socket(), "any");
    const Attached a(dibsd.socket(), "a");
    dibs_claim_options options = Attached::asking(DIBS_FOREVER);
    const dibs_pool_units further = {a.pool(), 1};
    options.also = &further;
    options.also_count = 1;
    dibs_completion end = {};
    EXPECT_EQ(dibs_claim(any, any.pool(), &options, &end), DIBS_EARGUMENT);
    const dibs_pool_units set = {any.pool(), 1};
    options.also = &set;
    EXPECT_EQ(dibs_claim(a, a.pool(), &options, &end), DIBS_EARGUMENT);
}

}  // namespace
}  // namespace dibs::test
