// tests/process/parked_process_test.cpp -- leases that are put aside and taken again beside a real
// dibsd: who gets them when, and by which fence.
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <signal.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/parked.hpp"

namespace dibs::test {
namespace {

TEST(Parked, IsTakenAgainByItsSessionAndCountsAsGrantedAndReleased) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 2, "1h"));
    const Attached watcher(dibsd.socket(), "tokens");
    constexpr uint64_t kUses = 1000;
    {
        const Attached client(dibsd.socket(), "tokens");
        const dibs_lease first = take(client);
        put(client, first);
        for (uint64_t i = 1; i < kUses; ++i) {
            const dibs_lease again = take(client);
            ASSERT_EQ(again.id, first.id);
            ASSERT_EQ(again.fence, first.fence + i);
            put(client, again);
        }
        client.await([](const auto& pool) { return pool.leased == 1; });
    }
    watcher.await([](const auto& pool) { return pool.idle == 2 && pool.parked == 0; });
    dibs_totals totals = {};
    totals.size = sizeof totals;
    while (totals.released < kUses) {
        ASSERT_EQ(dibs_pool_totals(watcher, watcher.pool(), &totals), DIBS_OK);
        sched_yield();
    }
    EXPECT_EQ(totals.accepted, kUses);
    EXPECT_EQ(totals.granted, kUses);
    EXPECT_EQ(totals.released, kUses);
    EXPECT_EQ(take(watcher).fence, kUses + 1);
}

TEST(Parked, IsTakenByAnotherSessionAtOnce) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 1, "1h"));
    const Attached holder(dibsd.socket(), "tokens");
    const Attached other(dibsd.socket(), "tokens");
    const dibs_lease first = take(holder);
    put(holder, first);
    const dibs_lease second = take(other);  // and does not wait for an hour
    EXPECT_NE(second.id, first.id);
    EXPECT_GT(second.fence, first.fence);
    put(other, second);
    // Nor does who would not wait at all.
    const dibs_completion now = holder.claim(Attached::asking(DIBS_NOWAIT));
    ASSERT_EQ(now.outcome, DIBS_GRANTED);
    EXPECT_GT(now.lease.fence, second.fence);
    const dibs_completion busy = other.claim(Attached::asking(DIBS_NOWAIT));
    EXPECT_EQ(busy.code, DIBS_EBUSY);
    put(holder, now.lease);
}

TEST(Parked, IsKeptFromWhoWaitsForAQuantumAtMost) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("long", 1, "1h") + parking_pool("short", 1, "1ms"));
    for (const char* pool : {"long", "short"}) {
        const Attached holder(dibsd.socket(), pool);
        const Attached waiter(dibsd.socket(), pool);
        dibs_lease held = take(holder);
        const dibs_lease first = held;
        waiter.submit();
        waiter.await([](const auto& now) { return now.queued == 1; });
        dibs_completion end = {};
        if (pool == std::string("long")) {
            for (int i = 0; i < 1000; ++i) {
                put(holder, held);
                held = take(holder);
                ASSERT_EQ(held.id, first.id);
            }
            EXPECT_EQ(dibs_reap(waiter, &end, 1, DIBS_NOWAIT), 0);
            continue;
        }
        await_wanted(holder, held);
        put(holder, held);
        end = reap_one(waiter);
        ASSERT_EQ(end.outcome, DIBS_GRANTED);
        EXPECT_GT(end.lease.fence, held.fence);
    }
}

TEST(Parked, ServesAWaiterThoughItsHolderClaimsAllTheTime) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 1, "1ms"));
    const Attached holder(dibsd.socket(), "tokens");
    const Attached waiter(dibsd.socket(), "tokens");
    for (int round = 0; round < 20; ++round) {
        put(holder, take(holder));
        waiter.submit();
        dibs_completion end = {};
        while (dibs_reap(waiter, &end, 1, DIBS_NOWAIT) == 0) {
            dibs_completion own = {};
            const dibs_claim_options brief = Attached::asking(DIBS_MILLISECOND);
            ASSERT_EQ(dibs_claim(holder, holder.pool(), &brief, &own), DIBS_OK);
            if (own.outcome == DIBS_GRANTED) put(holder, own.lease);
        }
        ASSERT_EQ(end.outcome, DIBS_GRANTED);
        put(waiter, end.lease);
    }
}

// Of each slot; two slots may show the same one.
TEST(Parked, HasFencesThatGrowWithEachUseOfASlot) {
    const Folder folder;
    const KeptDibsd dibsd(folder, parking_pool("tokens", 2, "1ms"));
    const Attached one(dibsd.socket(), "tokens");
    const Attached two(dibsd.socket(), "tokens");
    std::map<uint32_t, uint64_t> last;
    const auto use = [&](const Attached& client, int times) {
        for (int i = 0; i < times; ++i) {
            const dibs_lease lease = take(client);
            uint64_t& fence = last[number_of(client, lease)];
            ASSERT_GT(lease.fence, fence);
            fence = lease.fence;
            put(client, lease);
        }
    };
    for (int round = 0; round < 4; ++round) {
        use(one, 5);
        use(two, 50);
        // Both slots: what the other one has parked is recalled.
        const dibs_lease first = take(one);
        const dibs_lease second = take(one);
        for (const dibs_lease& lease : {first, second}) {
            uint64_t& fence = last[number_of(one, lease)];
            EXPECT_GT(lease.fence, fence);
            fence = lease.fence;
        }
        put(one, first);
        put(one, second);
        use(one, 100);
        dibsd.kill_broker();
        use(one, 5);
    }
}

TEST(Parked, IsNotReleasedTwiceNorByAnEarlierUse) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 1, "1h"));
    const Attached client(dibsd.socket(), "tokens");
    const dibs_lease first = take(client);
    put(client, first);
    dibs_slot slot = {};
    const auto expect_over = [&](const dibs_lease& lease) {
        EXPECT_EQ(dibs_release(client, &lease, DIBS_NOWAIT), DIBS_ALREADY_ENDED);
        EXPECT_EQ(dibs_release(client, &lease, DIBS_FOREVER), DIBS_ALREADY_ENDED);
        EXPECT_EQ(dibs_fail(client, &lease, DIBS_FOREVER), DIBS_ALREADY_ENDED);
        EXPECT_EQ(dibs_keepalive(client, &lease, 0, DIBS_FOREVER, nullptr), DIBS_ALREADY_ENDED);
        EXPECT_EQ(dibs_lease_slot(client, &lease, 0, &slot), DIBS_ALREADY_ENDED);
        EXPECT_NE(dibs_lease_state(client, &lease, nullptr), DIBS_LIVE);
    };
    expect_over(first);
    const dibs_lease second = take(client);
    ASSERT_EQ(second.id, first.id);
    expect_over(first);
    EXPECT_EQ(dibs_lease_state(client, &second, nullptr), DIBS_LIVE);
    EXPECT_EQ(dibs_keepalive(client, &second, 0, DIBS_FOREVER, nullptr), DIBS_OK);
    dibs_lease never = second;
    never.fence += 1;
    EXPECT_EQ(dibs_release(client, &never, DIBS_FOREVER), DIBS_ESTALE);
    // Broken things are not put aside.
    EXPECT_EQ(dibs_fail(client, &second, DIBS_FOREVER), DIBS_OK);
    client.await([](const auto& pool) { return pool.idle == 1; });
    expect_over(second);
}

// What is no plain claim never finds what is put aside; it finds the slot all the same.
TEST(Parked, IsForPlainClaimsAlone) {
    const Folder folder;
    const Dibsd dibsd(folder,
                      parking_pool("tokens", 2, "1h") + "units_max = 2\npayload_max = 64\n");
    const Attached client(dibsd.socket(), "tokens");
    dibs_claim_options timed = Attached::asking(DIBS_FOREVER);
    timed.interval_ns = 100 * DIBS_SECOND;
    dibs_claim_options keyed = Attached::asking(DIBS_FOREVER);
    keyed.key[0] = 1;
    dibs_claim_options carrying = Attached::asking(DIBS_FOREVER);
    carrying.body = "x";
    carrying.body_size = 1;
    for (const dibs_claim_options& asked :
         {Attached::asking(DIBS_FOREVER, 2), timed, keyed, carrying}) {
        const dibs_lease aside = take(client);
        put(client, aside);
        const dibs_completion end = client.claim(asked);
        ASSERT_EQ(end.outcome, DIBS_GRANTED);
        EXPECT_NE(end.lease.id, aside.id);
        EXPECT_EQ(dibs_release(client, &end.lease, DIBS_FOREVER), DIBS_OK);
        if (asked.units == 2) {
            client.await([](const auto& pool) { return pool.idle == 2; });
        } else {
            client.await([](const auto& pool) { return pool.idle == 1; });
            EXPECT_EQ(take(client).id, aside.id);
            dibs_lease taken = aside;
            taken.fence += 1;
            EXPECT_EQ(dibs_fail(client, &taken, DIBS_FOREVER), DIBS_OK);
            client.await([](const auto& pool) { return pool.idle == 2; });
        }
    }
}

TEST(Parked, GivesWayToItsUsersLimit) {
    const Folder folder;
    const Dibsd dibsd(folder,
                      parking_pool("a", 1, "1h") + parking_pool("b", 1, "1h") +
                          "[[policy]]\ndefault = true\nleases = 1\n");
    const Attached client(dibsd.socket(), "a");
    uint32_t b = 0;
    ASSERT_EQ(dibs_pool(client, "b", &b), DIBS_OK);
    for (int i = 0; i < 20; ++i) {
        dibs_completion end = {};
        ASSERT_EQ(dibs_claim(client, i % 2 == 0 ? client.pool() : b, nullptr, &end), DIBS_OK);
        ASSERT_EQ(end.outcome, DIBS_GRANTED) << i;
        dibs_completion second = {};
        ASSERT_EQ(dibs_claim(client, i % 2 == 0 ? b : client.pool(), nullptr, &second), DIBS_OK);
        ASSERT_EQ(second.code, DIBS_ELIMIT);  // while it is used
        put(client, end.lease);
    }
}

TEST(Parked, LeavesTagsForClaimsOfOtherPools) {
    const Folder folder;
    constexpr uint32_t kPools = 12;
    std::string config;
    for (uint32_t pool = 0; pool < kPools; ++pool)
        config += parking_pool("p" + std::to_string(pool), 4, "1h");
    const Dibsd dibsd(folder, config);
    dibs_connect_options sizes = {};
    sizes.leases_max = 8;
    const Attached client(dibsd.socket(), "p0", sizes);
    for (uint32_t round = 0; round < 20; ++round) {
        for (uint32_t pool = 0; pool < kPools; ++pool) {
            dibs_completion end = {};
            ASSERT_EQ(dibs_claim(client, pool, nullptr, &end), DIBS_OK);
            ASSERT_EQ(end.outcome, DIBS_GRANTED);
            put(client, end.lease);
        }
    }
    // All tags at once, though each is a parked lease's.
    std::vector<dibs_lease> held;
    for (int i = 0; i < 8; ++i) {
        dibs_completion end = {};
        ASSERT_EQ(dibs_claim(client, static_cast<uint32_t>(i) / 4, nullptr, &end), DIBS_OK);
        ASSERT_EQ(end.outcome, DIBS_GRANTED);
        held.push_back(end.lease);
    }
    dibs_completion end = {};
    EXPECT_EQ(dibs_claim(client, 3, nullptr, &end), DIBS_ELIMIT);
    for (const dibs_lease& lease : held)
        put(client, lease);
}

// The broker wakes by its timer alone: a handful of times however long that takes.
TEST(Parked, WakesNobodyAsItIsTakenAndReleased) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 2, "1h"));
    const Attached one(dibsd.socket(), "tokens");
    const Attached two(dibsd.socket(), "tokens");
    put(one, take(one));
    const dibs_lease held = take(one);
    put(two, take(two));
    put(one, held);
    constexpr uint64_t kUses = 200'000;
    const uint64_t before = dibsd.voluntary_switches();
    const auto use = [](const Attached& client) {
        for (uint64_t i = 0; i < kUses; ++i)
            put(client, take(client));
    };
    std::thread other([&] { use(two); });
    use(one);
    other.join();
    EXPECT_LT(dibsd.voluntary_switches() - before, kUses / 100);
}

TEST(Parked, IsIdleOnceNobodyHasUsedItForSomeSeconds) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 2, "1h"));
    const Attached client(dibsd.socket(), "tokens");
    const dibs_lease first = take(client);
    const dibs_lease second = take(client);
    put(client, first);
    client.await([](const auto& pool) { return pool.parked == 1; });
    client.await([](const auto& pool) { return pool.idle == 1 && pool.parked == 0; });
    EXPECT_EQ(client.counters().leased, 1U);  // what is used is nobody else's
    EXPECT_EQ(dibs_lease_state(client, &second, nullptr), DIBS_LIVE);
    const dibs_lease third = take(client);
    EXPECT_NE(third.id, first.id);
    EXPECT_GT(third.fence, first.fence);
}

TEST(Parked, IsNothingToAForkedChild) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 1, "1h"));
    const Attached client(dibsd.socket(), "tokens");
    const dibs_lease first = take(client);
    put(client, first);
    const Child child([&](const Child& self) {
        dibs_completion end = {};
        const int code = dibs_claim(client, client.pool(), nullptr, &end);
        const int released = dibs_release(client, &first, DIBS_NOWAIT);
        self.mark(code == DIBS_EFORK && released == DIBS_EFORK ? 'f' : 'x');
    });
    EXPECT_EQ(child.marked(), 'f');
    EXPECT_EQ(take(client).id, first.id);
}

dibs_assignment next_of(const Attached& worker) {
    dibs_assignment assignment = {};
    EXPECT_EQ(dibs_next_assignment(worker, DIBS_FOREVER, &assignment), DIBS_OK);
    return assignment;
}

const char* const kWorkers =
    "[[pool]]\nname = \"web\"\nkind = \"worker\"\nreservation_ttl = \"10min\"\nanswer_max = 64\n"
    "quantum = \"1h\"\npark = true\n";

struct ParkedWorker : testing::Test {
    ParkedWorker()
        : dibsd(folder, kWorkers), worker(dibsd.socket(), "web"), client(dibsd.socket(), "web") {
        dibs_announce_options options = {};
        options.size = sizeof options;
        options.name = "w";
        options.ready = 1;
        EXPECT_EQ(dibs_announce(worker, worker.pool(), &options, DIBS_FOREVER, &slot), DIBS_OK);
    }
    // Through the worker.
    dibs_lease claim() {
        std::thread confirms([this] {
            dibs_assignment assignment = next_of(worker);
            while (assignment.kind != DIBS_ASSIGN)  // of the lease before
                assignment = next_of(worker);
            round = assignment.round;
            EXPECT_EQ(dibs_confirm(worker, slot, round, "a", 1, DIBS_FOREVER), DIBS_OK);
        });
        const dibs_lease lease = take(client);
        confirms.join();
        return lease;
    }
    const Folder folder;
    const Dibsd dibsd;
    const Attached worker;
    const Attached client;
    uint64_t slot = 0;
    uint64_t round = 0;
};

TEST_F(ParkedWorker, LearnsOfNoUseWhileItsLeaseIsParked) {
    const dibs_lease first = claim();
    for (uint64_t i = 1; i <= 100; ++i) {
        dibs_lease last = first;
        last.fence += i - 1;
        put(client, last);
        ASSERT_EQ(take(client).fence, first.fence + i);
    }
    dibs_assignment nothing = {};
    EXPECT_EQ(dibs_next_assignment(worker, DIBS_NOWAIT, &nothing), DIBS_ETIMEDOUT);
    const void* answer = nullptr;
    size_t size = 0;
    dibs_lease last = first;
    last.fence += 100;
    EXPECT_EQ(dibs_lease_answer(client, &last, 0, &answer, &size), DIBS_OK);
    EXPECT_EQ(size, 1U);
}

// Whatever its worker says, nobody takes again what has ended by that.
TEST_F(ParkedWorker, EndsWhatIsParkedByItsWord) {
    const dibs_lease first = claim();
    put(client, first);
    // The same as if it had been released just before.
    ASSERT_EQ(dibs_done(worker, slot, round, nullptr, 0, 1, DIBS_FOREVER), DIBS_ESTATE);
    const dibs_assignment over = next_of(worker);
    ASSERT_EQ(over.kind, DIBS_REVOKE);
    ASSERT_EQ(dibs_ready(worker, slot, over.round, DIBS_FOREVER), DIBS_OK);
    const dibs_lease second = claim();
    EXPECT_NE(second.id, first.id);
    put(client, second);
    ASSERT_EQ(dibs_ready(worker, slot, round, DIBS_FOREVER), DIBS_OK);
    const dibs_lease third = claim();
    EXPECT_NE(third.id, second.id);
    EXPECT_GT(third.fence, second.fence);
    put(client, third);
    ASSERT_EQ(dibs_withdraw(worker, slot, DIBS_FOREVER), DIBS_OK);
    dibs_completion end = {};
    const dibs_claim_options now = Attached::asking(DIBS_NOWAIT);
    ASSERT_EQ(dibs_claim(client, client.pool(), &now, &end), DIBS_OK);
    EXPECT_NE(end.outcome, DIBS_GRANTED);
}

// Whom a worker refuses is served by what another one takes all the time.
TEST(ParkedWorkers, ServeAClaimThatWaitsAgain) {
    const Folder folder;
    const Dibsd dibsd(folder,
                      "[[pool]]\nname = \"web\"\nkind = \"worker\"\nreservation_ttl = \"10min\"\n"
                      "quantum = \"1ms\"\npark = true\n");
    const Attached workers(dibsd.socket(), "web");
    const Attached busy(dibsd.socket(), "web");
    const Attached waiter(dibsd.socket(), "web");
    const auto announce = [&](const char* name) {
        uint64_t slot = 0;
        dibs_announce_options options = {};
        options.size = sizeof options;
        options.name = name;
        options.ready = 1;
        EXPECT_EQ(dibs_announce(workers, workers.pool(), &options, DIBS_FOREVER, &slot), DIBS_OK);
        return slot;
    };
    const auto serve = [&](int64_t patience_ns) {
        dibs_assignment word = {};
        if (dibs_next_assignment(workers, patience_ns, &word) != DIBS_OK) return;
        const int code =
            word.kind == DIBS_ASSIGN
                ? dibs_confirm(workers, word.slot, word.round, nullptr, 0, DIBS_FOREVER)
                : dibs_ready(workers, word.slot, word.round, DIBS_FOREVER);
        EXPECT_EQ(code, DIBS_OK);
    };
    announce("a");
    dibs_lease held = {};
    std::thread claims([&] { held = take(busy); });
    serve(DIBS_FOREVER);
    claims.join();
    const uint64_t other = announce("b");
    waiter.submit();
    const dibs_assignment asked = next_of(workers);
    ASSERT_EQ(asked.slot, other);
    ASSERT_EQ(dibs_refuse(workers, other, asked.round, 1, 1, DIBS_FOREVER), DIBS_OK);
    put(busy, held);
    dibs_completion end = {};
    while (dibs_reap(waiter, &end, 1, DIBS_NOWAIT) == 0) {
        serve(DIBS_NOWAIT);
        dibs_completion own = {};
        const dibs_claim_options brief = Attached::asking(DIBS_MILLISECOND);
        ASSERT_EQ(dibs_claim(busy, busy.pool(), &brief, &own), DIBS_OK);
        if (own.outcome == DIBS_GRANTED) put(busy, own.lease);
    }
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
}

TEST_F(ParkedWorker, EndsWhatIsTakenByItsWord) {
    const dibs_lease first = claim();
    put(client, first);
    const dibs_lease again = take(client);
    ASSERT_EQ(again.id, first.id);
    ASSERT_EQ(dibs_ready(worker, slot, round, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(reap_one(client).kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(dibs_release(client, &again, DIBS_FOREVER), DIBS_ALREADY_ENDED);
    EXPECT_NE(claim().id, first.id);
}

}  // namespace
}  // namespace dibs::test
