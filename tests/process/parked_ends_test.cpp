// tests/process/parked_ends_test.cpp -- how parked leases end: drains, new configurations,
// administrators, adoption, and deaths of holders and brokers.
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "broker/segments/mapping.hpp"
#include "shm/memfd.hpp"
#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/parked.hpp"
#include "tests/process/tool.hpp"
#include "tests/repeats.hpp"

namespace dibs::test {
namespace {

int run(const std::string& socket, const Words& words) {
    Tool tool(socket, words);
    const std::string said = tool.rest() + tool.error_rest();
    const int code = tool.wait();
    EXPECT_EQ(code, 0) << said;
    return code;
}

// One that is taken, and one that is put aside.
struct Two {
    explicit Two(const Attached& client) : taken(take(client)), aside(take(client)) {
        put(client, aside);
    }
    dibs_lease taken;
    dibs_lease aside;
};

// What is used goes on; what is put aside has gone, and what is released now goes back.
void expect_asked_back(const Attached& client, const Two& two, uint32_t idle) {
    client.await([](const auto& pool) { return pool.leased == 1; });
    EXPECT_EQ(dibs_lease_state(client, &two.taken, nullptr), DIBS_LIVE);
    await_wanted(client, two.taken);
    put(client, two.taken);
    client.await([&](const auto& pool) { return pool.leased == 0 && pool.idle == idle; });
}

TEST(ParkedEnds, WithADrainOfItsPool) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 2, "1h"));
    const Attached client(dibsd.socket(), "tokens");
    const Two two(client);
    run(dibsd.socket(), {"drain", "tokens"});
    expect_asked_back(client, two, 2);
    dibs_completion end = {};
    ASSERT_EQ(dibs_claim(client, client.pool(), nullptr, &end), DIBS_OK);
    EXPECT_EQ(end.code, DIBS_EDRAINING);
    run(dibsd.socket(), {"undrain", "tokens"});
    const Two again(client);
    run(dibsd.socket(), {"drain", "--all"});
    expect_asked_back(client, again, 2);
}

TEST(ParkedEnds, WithADrainOfItsSlot) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 2, "1h"));
    const Attached client(dibsd.socket(), "tokens");
    const Two two(client);
    run(dibsd.socket(), {"drain", "tokens/" + std::to_string(1)});
    client.await([](const auto& pool) { return pool.leased == 1; });
    await_wanted(client, two.taken);
    put(client, two.taken);
    client.await([](const auto& pool) { return pool.leased == 0; });
    const dibs_lease first = take(client);
    EXPECT_EQ(number_of(client, first), 0U);
    dibs_completion end = {};
    const dibs_claim_options now = Attached::asking(DIBS_NOWAIT);
    ASSERT_EQ(dibs_claim(client, client.pool(), &now, &end), DIBS_OK);
    EXPECT_NE(end.outcome, DIBS_GRANTED);
}

TEST(ParkedEnds, WithAnOrderToStop) {
    const Folder folder;
    Dibsd dibsd(folder, "drain_timeout = \"1h\"\n" + parking_pool("tokens", 2, "1h"));
    const Attached client(dibsd.socket(), "tokens");
    const Two two(client);
    dibsd.signal(SIGTERM);
    client.await([](const auto& pool) { return pool.leased == 1; });
    await_wanted(client, two.taken);
    put(client, two.taken);
    EXPECT_EQ(dibsd.wait(), 0);
}

TEST(ParkedEnds, WhereItsPoolShrinksOrParksNoMore) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 2, "1h"));
    const Attached client(dibsd.socket(), "tokens");
    const Two two(client);
    const auto reload = [&](const std::string& pool) {
        (void)folder.write("dibsd.toml",
                           "log_level = \"warning\"\n" + strict_unless_said(pool) + pool);
        dibsd.signal(SIGHUP);
    };
    reload(parking_pool("tokens", 2, "0ns"));
    expect_asked_back(client, two, 2);
    const dibs_lease plain = take(client);
    put(client, plain);
    client.await([](const auto& pool) { return pool.idle == 2; });
    reload(parking_pool("tokens", 3, "1h"));
    client.await([](const auto& pool) { return pool.slots == 3; });
    const Two more(client);
    reload(parking_pool("tokens", 1, "1h"));
    expect_asked_back(client, more, 1);
    EXPECT_EQ(client.counters().slots, 1U);
    EXPECT_EQ(number_of(client, take(client)), 0U);
}

TEST(ParkedEnds, WhereItsUserMayClaimNoMore) {
    const Folder folder;
    const std::string pool = parking_pool("tokens", 2, "1h");
    const Dibsd dibsd(folder, pool);
    const Attached client(dibsd.socket(), "tokens");
    const Two two(client);
    (void)folder.write("dibsd.toml",
                       "log_level = \"warning\"\n" + strict_unless_said(pool) + pool +
                           "[[policy]]\ndefault = true\npools = []\n");
    dibsd.signal(SIGHUP);
    expect_asked_back(client, two, 2);
    dibs_completion end = {};
    ASSERT_EQ(dibs_claim(client, client.pool(), nullptr, &end), DIBS_OK);
    EXPECT_EQ(end.code, DIBS_ENOTALLOWED);
}

TEST(ParkedEnds, ByAnAdministratorsRelease) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 2, "1h"));
    const Attached client(dibsd.socket(), "tokens");
    dibs_completion taken = {};
    dibs_completion aside = {};
    ASSERT_EQ(dibs_claim(client, client.pool(), nullptr, &taken), DIBS_OK);
    ASSERT_EQ(dibs_claim(client, client.pool(), nullptr, &aside), DIBS_OK);
    put(client, aside.lease);
    run(dibsd.socket(), {"release", "l" + std::to_string(aside.claim)});
    client.await([](const auto& pool) { return pool.idle == 1; });
    run(dibsd.socket(), {"release", "l" + std::to_string(taken.claim)});
    client.await([](const auto& pool) { return pool.idle == 2; });
    const dibs_completion told = reap_one(client);
    EXPECT_EQ(told.kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(told.lease.id, taken.lease.id);
    EXPECT_EQ(dibs_release(client, &taken.lease, DIBS_FOREVER), DIBS_ALREADY_ENDED);
    for (const dibs_lease& lease : {take(client), take(client)}) {
        EXPECT_NE(lease.id, taken.lease.id);
        EXPECT_NE(lease.id, aside.lease.id);
        EXPECT_GT(lease.fence, taken.lease.fence);
    }
}

TEST(ParkedEnds, ByAnAdoptionThatFindsItAndOneThatIsTakenMoves) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 2, "1h"));
    const Attached client(dibsd.socket(), "tokens");
    const Attached other(dibsd.socket(), "tokens");
    const Two two(client);
    dibs_lease lease = {};
    EXPECT_EQ(dibs_adopt(other, two.aside.id, two.aside.fence, DIBS_FOREVER, &lease), DIBS_EENDED);
    client.await([](const auto& pool) { return pool.idle == 1; });
    // Taken twice since its grant: the fence is that of the use.
    put(client, two.taken);
    const dibs_lease use = take(client);
    ASSERT_EQ(use.id, two.taken.id);
    EXPECT_EQ(dibs_adopt(other, use.id, two.taken.fence, DIBS_FOREVER, &lease), DIBS_ESTALE);
    ASSERT_EQ(dibs_adopt(other, use.id, use.fence, DIBS_FOREVER, &lease), DIBS_OK);
    EXPECT_EQ(lease.fence, use.fence);
    EXPECT_EQ(reap_one(client).code, DIBS_EADOPTED);
    EXPECT_EQ(dibs_release(client, &use, DIBS_FOREVER), DIBS_ALREADY_ENDED);
    EXPECT_EQ(dibs_release(other, &lease, DIBS_NOWAIT), DIBS_OK);  // never parked again
    client.await([](const auto& pool) { return pool.idle == 2; });
    EXPECT_GT(take(client).fence, use.fence);
}

TEST(ParkedEnds, WithTheDeathOfItsHolder) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 2, "1h"));
    const Attached client(dibsd.socket(), "tokens");
    Child holder([&](const Child& self) {
        const Attached own(dibsd.socket(), "tokens");
        const Two two(own);
        put(own, two.taken);
        put(own, take(own));
        const dibs_lease again = take(own);
        self.mark(static_cast<char>(again.fence));
        while (true)
            pause();
    });
    const auto last = static_cast<uint64_t>(holder.marked());
    client.await([](const auto& pool) { return pool.idle == 0; });
    holder.kill();
    client.await([](const auto& pool) { return pool.idle == 2; });
    EXPECT_GT(take(client).fence, last);
    EXPECT_GT(take(client).fence, last);
}

TEST(ParkedTakeover, KeepsWhatIsPutAsideAndWhatIsTaken) {
    const Folder folder;
    const KeptDibsd dibsd(folder, parking_pool("tokens", 2, "1h"));
    const Attached client(dibsd.socket(), "tokens");
    const Attached other(dibsd.socket(), "tokens");
    const Two two(client);
    dibsd.kill_broker();
    const dibs_lease again = take(client);  // maybe while there is no broker
    EXPECT_EQ(again.id, two.aside.id);
    EXPECT_EQ(again.fence, two.aside.fence + 1);
    put(client, again);
    const dibs_lease others = take(other);  // by the next broker
    EXPECT_EQ(number_of(other, others), 1U);
    EXPECT_GT(others.fence, again.fence);
    EXPECT_EQ(dibs_lease_state(client, &two.taken, nullptr), DIBS_LIVE);
    put(client, two.taken);
    EXPECT_EQ(take(client).id, two.taken.id);
}

TEST(ParkedTakeover, RemembersWhatIsWanted) {
    const Folder folder;
    const KeptDibsd dibsd(folder, parking_pool("tokens", 1, "1ms"));
    const Attached client(dibsd.socket(), "tokens");
    const Attached waiter(dibsd.socket(), "tokens");
    const dibs_lease held = take(client);
    waiter.submit();
    await_wanted(client, held);
    dibsd.kill_broker();
    put(client, held);
    const dibs_completion end = reap_one(waiter);
    ASSERT_EQ(end.outcome, DIBS_GRANTED);
    EXPECT_GT(end.lease.fence, held.fence);
}

// A client goes on while its broker does not, and however often it does: that is no lie. Broker
// time stands meanwhile.
TEST(ParkedTakeover, BelievesWhatWasTakenWhileNobodyServed) {
    constexpr uint64_t kUses = 10'000'000;
    const Folder folder;
    const KeptDibsd dibsd(folder, parking_pool("tokens", 3, "1h"));
    const Attached other(dibsd.socket(), "tokens");
    for (const bool is_killed : {true, false}) {
        const pid_t broker = dibsd.broker();
        const pid_t keeper = dibsd.keeper();
        const pid_t stopped = is_killed ? keeper : broker;
        const Attached client(dibsd.socket(), "tokens");
        if (is_killed) kill(keeper, SIGSTOP);
        dibs_claim_options timed = Attached::asking(DIBS_FOREVER);
        timed.interval_ns = DIBS_MILLISECOND;  // something that comes due
        ASSERT_EQ(other.claim(timed).outcome, DIBS_GRANTED);
        const dibs_lease first = take(client);
        if (is_killed) {
            kill_and_await(broker, SIGKILL);
        } else {
            kill(broker, SIGSTOP);
        }
        put(client, first);
        for (uint64_t i = 0; i < kUses && !HasFailure(); ++i)
            put(client, take(client));
        kill(stopped, SIGCONT);
        // All slots, so that what is put aside is looked at.
        std::vector<dibs_lease> all;
        for (int i = 0; i < 3; ++i)
            all.push_back(take(other));
        for (const dibs_lease& lease : all)
            put(other, lease);
        EXPECT_GT(take(client).fence, first.fence + kUses);
        EXPECT_EQ(dibs_end_code(client), 0);
    }
}

// What the processes of the storm see: each slot's user, and the fence of its last use.
struct Sheet {
    struct Slot {
        std::atomic<pid_t> user;
        std::atomic<uint64_t> fence;
    } slots[4];
    std::atomic<uint64_t> uses;
    std::atomic<uint32_t> wrong;
};

// Uses slots until it dies, each as the only one: whoever is granted it meanwhile overwrites its
// mark, which it finds out as it gives it back.
void use_for_ever(const std::string& socket, Sheet& sheet, const Child& self) {
    const Attached client(socket, "tokens");
    self.mark('a');
    const pid_t own = getpid();
    for (;;) {
        dibs_completion end = {};
        const dibs_claim_options patient = Attached::asking(DIBS_SECOND);
        const int code = dibs_claim(client, client.pool(), &patient, &end);
        if (code != DIBS_OK) sheet.wrong = 1;
        if (code != DIBS_OK) break;
        if (end.outcome != DIBS_GRANTED) continue;
        dibs_slot slot = {};
        if (dibs_lease_slot(client, &end.lease, 0, &slot) != DIBS_OK) sheet.wrong = 2;
        Sheet::Slot& used = sheet.slots[slot.number];
        const pid_t before = used.user.exchange(own);
        if (before == own) sheet.wrong = 4;
        if (used.fence.exchange(end.lease.fence) >= end.lease.fence) sheet.wrong = 5;
        if (end.lease.fence % 64 == 0) sched_yield();
        pid_t mine = own;
        if (!used.user.compare_exchange_strong(mine, 0)) sheet.wrong = 6;
        ++sheet.uses;
        if (dibs_release(client, &end.lease, DIBS_NOWAIT) != DIBS_OK) sheet.wrong = 7;
    }
    while (true)
        pause();
}

TEST(ParkedTakeover, GrantsNobodyWhatAnotherUsesWhoeverDies) {
    const Folder folder;
    const KeptDibsd dibsd(folder, parking_pool("tokens", 2, "100us"));
    const shm::Descriptor shared = shm::make_memfd("sheet", 4096);
    const Mapping page(shared.get(), 4096);
    auto& sheet = *new (page.bytes().data()) Sheet{};
    std::vector<std::unique_ptr<Child>> users(3);
    const auto renew = [&](size_t at) {
        users[at] = std::make_unique<Child>(
            [&](const Child& self) { use_for_ever(dibsd.socket(), sheet, self); });
        ASSERT_EQ(users[at]->marked(), 'a');
    };
    const auto await_uses = [&] {
        const uint64_t from = sheet.uses;
        while (sheet.uses < from + 2000 && sheet.wrong == 0)
            sched_yield();
    };
    for (size_t at = 0; at < users.size(); ++at)
        renew(at);
    const uint64_t rounds = tests::repeats(20, 500);
    for (uint64_t round = 0; round < rounds && sheet.wrong == 0; ++round) {
        await_uses();
        if (round % 2 == 0) {
            users[round / 2 % users.size()].reset();
            renew(round / 2 % users.size());
        } else {
            dibsd.kill_broker();
        }
    }
    await_uses();
    EXPECT_EQ(sheet.wrong, 0U);
    users.clear();
    const Attached client(dibsd.socket(), "tokens");
    client.await([](const auto& pool) { return pool.idle == 2 && pool.queued == 0; });
}

TEST(ParkedEnds, IsNotThatOfALaterTakeWhereABatchNamesAnEarlierOne) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 1, "1h"));
    const Attached holder(dibsd.socket(), "tokens");
    const Attached other(dibsd.socket(), "tokens");
    const dibs_lease first = take(holder);
    put(holder, first);
    const dibs_lease again = take(holder);
    ASSERT_EQ(again.id, first.id);
    dibs_op op = {};
    op.size = sizeof op;
    op.kind = DIBS_OP_RELEASE;
    op.lease = &first;
    ASSERT_EQ(dibs_submit(holder, &op, 1), 1);
    EXPECT_EQ(reap_one(holder).code, DIBS_ALREADY_ENDED);
    EXPECT_EQ(other.claim(Attached::asking(DIBS_NOWAIT)).code, DIBS_EBUSY);
    EXPECT_EQ(dibs_lease_state(holder, &again, nullptr), DIBS_LIVE);
    EXPECT_EQ(dibs_release(holder, &again, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(other.claim(Attached::asking(DIBS_NOWAIT)).outcome, DIBS_GRANTED);
}

// A fence that no take had is believed nowhere, and costs nothing.
TEST(ParkedEnds, IsNotByAFenceThatWasNeverTaken) {
    const Folder folder;
    const Dibsd dibsd(folder, parking_pool("tokens", 1, "1h"));
    const Attached holder(dibsd.socket(), "tokens");
    const dibs_lease held = take(holder);
    for (const uint64_t more : {uint64_t{1}, uint64_t{500}, uint64_t{1} << 50U}) {
        dibs_lease wild = held;
        wild.session += 1;  // unknown to the library: the broker judges
        wild.fence += more;
        EXPECT_EQ(dibs_release(holder, &wild, DIBS_FOREVER), DIBS_ESTALE) << more;
    }
    EXPECT_EQ(dibs_lease_state(holder, &held, nullptr), DIBS_LIVE);
    put(holder, held);
    EXPECT_EQ(take(holder).fence, held.fence + 1);
}

// Nobody is left to grant the slot anew: its next take learns of it, however rare takes are.
TEST(ParkedEnds, IsLearntOfByTheNextTakeWhereNoBrokerIsLeft) {
    const Folder folder;
    Dibsd dibsd(folder, parking_pool("tokens", 1, "1h"));
    const Attached holder(dibsd.socket(), "tokens");
    put(holder, take(holder));
    dibsd.signal(SIGKILL);
    (void)dibsd.wait();
    struct timespec longer = {0, 150'000'000};  // than 100 ms, after which a take looks
    (void)pselect(0, nullptr, nullptr, nullptr, &longer, nullptr);
    dibs_completion end = {};
    EXPECT_EQ(dibs_claim(holder, holder.pool(), nullptr, &end), DIBS_EBROKERLOST);
}

TEST(ParkedEnds, ComesWhereItsRoomOrItsRowIsNeeded) {
    const Folder folder;
    const Dibsd dibsd(folder,
                      "[limits]\nleases = 64\n" + parking_pool("tokens", 64, "1h") +
                          parking_pool("other", 64, "1h"));
    dibs_connect_options options = {};
    options.size = sizeof options;
    const std::string socket = dibsd.socket();
    options.socket_path = socket.c_str();
    options.down_payload = 4096;
    dibs_session* narrow = nullptr;
    ASSERT_EQ(dibs_connect(&options, &narrow), DIBS_OK);
    uint32_t pool = 0;
    ASSERT_EQ(dibs_pool(narrow, "tokens", &pool), DIBS_OK);
    std::vector<dibs_completion> held(60);
    for (dibs_completion& one : held)
        ASSERT_EQ(dibs_claim(narrow, pool, nullptr, &one), DIBS_OK);
    for (const dibs_completion& one : held)
        ASSERT_EQ(dibs_release(narrow, &one.lease, DIBS_NOWAIT), DIBS_OK);
    const dibs_claim_options many = Attached::asking(DIBS_FOREVER, 32);
    dibs_completion end = {};
    for (int tries = 0; tries < 2 && end.outcome != DIBS_GRANTED; ++tries)
        ASSERT_EQ(dibs_claim(narrow, pool, &many, &end), DIBS_OK);
    EXPECT_EQ(end.outcome, DIBS_GRANTED) << dibs_strerror(end.code);
    EXPECT_EQ(dibs_close(narrow), DIBS_OK);

    const Attached one(dibsd.socket(), "tokens");
    const Attached two(dibsd.socket(), "other");
    one.await([](const auto& now) { return now.idle == 64; });
    std::vector<dibs_lease> all;
    for (int i = 0; i < 64; ++i)
        all.push_back(take(one));
    for (const dibs_lease& lease : all)
        put(one, lease);
    EXPECT_EQ(two.claim(Attached::asking(DIBS_NOWAIT)).outcome, DIBS_GRANTED);
}

TEST(ParkedEnds, DoesNotHoldUpAStopAndIsListedAsParked) {
    const Folder folder;
    KeptDibsd dibsd(folder, parking_pool("tokens", 2, "1h"));
    const Attached holder(dibsd.socket(), "tokens");
    put(holder, take(holder));
    const dibs_lease again = take(holder);
    put(holder, again);
    Tool list(dibsd.socket(), {"ls", "leases", "-o", "jsonl"});
    const std::string row = list.rest();
    EXPECT_NE(row.find("\"state\":\"parked\""), std::string::npos) << row;
    EXPECT_NE(row.find("\"fence\":" + std::to_string(again.fence)), std::string::npos) << row;
    Tool slots(dibsd.socket(), {"ls", "slots", "-o", "jsonl"});
    EXPECT_NE(slots.rest().find("\"state\":\"parked\""), std::string::npos);
    EXPECT_EQ(run(dibsd.socket(), {"stop"}), 0);
}

}  // namespace
}  // namespace dibs::test
