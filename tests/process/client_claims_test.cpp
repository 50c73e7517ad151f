// tests/process/client_claims_test.cpp -- libdibs and dibsd: claims of a counted pool and their
// leases, refusals and deaths.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "tests/process/child.hpp"
#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"

namespace dibs::test {
namespace {

const char* const kTokens =
    "[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 2\nunits_max = 2\n"
    "backlog_max = 2\npayload_max = 128\ninterval_max = \"10min\"\n"
    "attributes = [{ device = \"0\" }, { device = \"1\", bus = \"x\" }]\n";

TEST(ClientClaim, IsGrantedWithTheSlotsAttributesAndGivenBack) {
    const Folder folder;
    const Dibsd dibsd(folder, kTokens);
    const Attached client(dibsd.socket(), "tokens");
    const dibs_completion held = client.claim(Attached::asking(DIBS_FOREVER, 2));
    ASSERT_EQ(held.outcome, DIBS_GRANTED);
    EXPECT_EQ(held.lease.fence, 1U);
    EXPECT_EQ(held.lease.units, 2U);
    EXPECT_EQ(held.claim, 1U);
    const char* value = nullptr;
    ASSERT_EQ(dibs_lease_attribute(client, &held.lease, 0, "device", &value), DIBS_OK);
    EXPECT_STREQ(value, "0");
    ASSERT_EQ(dibs_lease_attribute(client, &held.lease, 1, "bus", &value), DIBS_OK);
    EXPECT_STREQ(value, "x");
    EXPECT_EQ(dibs_lease_attribute(client, &held.lease, 0, "bus", &value), DIBS_ENOVALUE);
    dibs_slot slot = {};
    ASSERT_EQ(dibs_lease_slot(client, &held.lease, 1, &slot), DIBS_OK);
    EXPECT_EQ(slot.number, 1U);
    client.await([](const auto& pool) { return pool.leased == 2 && pool.idle == 0; });
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_FOREVER), DIBS_OK);
    client.await([](const auto& pool) { return pool.leased == 0 && pool.idle == 2; });
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_FOREVER), DIBS_ALREADY_ENDED);
    EXPECT_EQ(client.claim().lease.fence, 2U);
}

TEST(ClientClaim, ThatFindsNothingIdleNamesTheHolder) {
    const Folder folder;
    const Dibsd dibsd(folder, kTokens);
    const Attached holder(dibsd.socket(), "tokens");
    const Attached client(dibsd.socket(), "tokens");
    const dibs_completion held = holder.claim(Attached::asking(0, 2));
    ASSERT_EQ(held.outcome, DIBS_GRANTED);
    const dibs_completion now = client.claim(Attached::asking(0));
    EXPECT_EQ(now.outcome, DIBS_REJECTED);
    EXPECT_EQ(now.code, DIBS_EBUSY);
    EXPECT_GT(now.retry_after_ns, 0);
    EXPECT_EQ(now.holder.pid, static_cast<uint32_t>(getpid()));
    EXPECT_EQ(now.holder.uid, getuid());
    EXPECT_EQ(now.holder.claim, held.claim);
    const dibs_completion later = client.claim(Attached::asking(DIBS_MILLISECOND));
    EXPECT_EQ(later.outcome, DIBS_EXPIRED);
    dibs_claim_options cold = Attached::asking(DIBS_FOREVER);
    cold.when_busy = DIBS_BUSY_COLD;
    EXPECT_EQ(client.claim(cold).code, DIBS_ECOLD);
}

// The broker hangs up before, while or after the library greets it: each time it has said why.
TEST(ClientConnect, IsToldThatItComesTooOften) {
    const Folder folder;
    const Dibsd dibsd(folder,
                      std::string(kTokens) + "[[policy]]\ndefault = true\nhandshakes = 1\n");
    dibs_connect_options options = {};
    options.size = sizeof options;
    options.socket_path = dibsd.socket().c_str();
    options.timeout_ns = DIBS_FOREVER;
    for (int i = 0; i < 200; ++i) {
        dibs_session* session = nullptr;
        const int code = dibs_connect(&options, &session);
        if (code == DIBS_OK) {
            ASSERT_EQ(dibs_close(session), DIBS_OK);
        } else {
            ASSERT_EQ(code, DIBS_ELIMIT) << i;
        }
    }
}

// A process without a descriptor left is told which system call failed, and loses nothing by it.
TEST(ClientConnect, SaysWhichSystemCallFailed) {
    const Folder folder;
    const Dibsd dibsd(folder, kTokens);
    const std::string socket = dibsd.socket();
    char why[256] = "";
    dibs_connect_options options = {};
    options.size = sizeof options;
    options.socket_path = socket.c_str();
    options.timeout_ns = DIBS_FOREVER;
    options.error_text = why;
    options.error_text_size = sizeof why;
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int lowest_free = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(lowest_free, 0);
    (void)close(lowest_free);
    rlimit full = before;
    full.rlim_cur = static_cast<rlim_t>(lowest_free);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &full), 0);
    dibs_session* session = nullptr;
    const int code = dibs_connect(&options, &session);
    const int error = errno;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(code, DIBS_ESYSTEM);
    EXPECT_EQ(error, EMFILE);
    EXPECT_EQ(session, nullptr);
    EXPECT_EQ(std::string(why), socket + ": socket: Too many open files");
    ASSERT_EQ(dibs_connect(&options, &session), DIBS_OK) << why;
    EXPECT_EQ(dibs_close(session), DIBS_OK);
}

// The broker has room for one session: none of those that came to nothing is still open.
TEST(ClientConnect, WithTooFewDescriptorsLeavesNoSession) {
    const Folder folder;
    const Dibsd dibsd(folder, std::string("[limits]\nsessions = 1\n") + kTokens);
    dibs_connect_options options = {};
    options.size = sizeof options;
    options.socket_path = dibsd.socket().c_str();
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    dibs_session* session = nullptr;
    int code = DIBS_ESYSTEM;
    rlim_t room = 0;
    for (; code == DIBS_ESYSTEM; ++room) {
        const int lowest_free = open("/dev/null", O_RDONLY | O_CLOEXEC);
        ASSERT_GE(lowest_free, 0);
        (void)close(lowest_free);
        rlimit tight = before;
        tight.rlim_cur = static_cast<rlim_t>(lowest_free) + room;
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
        code = dibs_connect(&options, &session);
        const int error = errno;
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        EXPECT_TRUE(code != DIBS_ESYSTEM || error == EMFILE) << std::strerror(error);
    }
    EXPECT_EQ(code, DIBS_OK) << "with room for " << room;
    EXPECT_GE(room, 7U);  // its socket, five of the Welcome and one to wait on
    EXPECT_EQ(dibs_close(session), DIBS_OK);
}

TEST(ClientClaim, WaitsItsTurn) {
    const Folder folder;
    const Dibsd dibsd(folder, kTokens);
    const Attached client(dibsd.socket(), "tokens");
    const dibs_completion held = client.claim(Attached::asking(0, 2));
    dibs_op ops[3] = {};
    for (uint64_t i = 0; i < 3; ++i) {
        ops[i].size = sizeof(dibs_op);
        ops[i].kind = DIBS_OP_CLAIM;
        ops[i].pool = client.pool();
        ops[i].user_data = 10 + i;
    }
    ASSERT_EQ(dibs_submit(client, ops, 3), 3);
    dibs_completion end = {};
    ASSERT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(end.user_data, 12U);  // the backlog holds two
    EXPECT_EQ(end.code, DIBS_EBACKLOG);
    EXPECT_GT(end.retry_after_ns, 0);
    EXPECT_EQ(dibs_cancel(client, ops[0].ticket), DIBS_OK);
    ASSERT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(end.user_data, 10U);
    EXPECT_EQ(end.outcome, DIBS_CANCELLED);
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_NOWAIT), DIBS_OK);
    ASSERT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(end.user_data, 11U);
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
}

TEST(ClientClaim, IsRejectedForWhatThePoolDoesNotAllow) {
    const Folder folder;
    const Dibsd dibsd(folder, kTokens);
    const Attached client(dibsd.socket(), "tokens");
    uint32_t pool = 0;
    EXPECT_EQ(dibs_pool(client, "token", &pool), DIBS_EPOOL);
    EXPECT_EQ(client.claim(Attached::asking(0, 3)).code, DIBS_EUNITS);
    dibs_claim_options large = Attached::asking(0);
    const std::vector<char> body(200);
    large.body = body.data();
    large.body_size = body.size();
    EXPECT_EQ(client.claim(large).code, DIBS_EPAYLOAD);

    dibs_claim_options keyed = Attached::asking(0);
    keyed.key[3] = 7;
    const dibs_completion first = client.claim(keyed);
    ASSERT_EQ(first.outcome, DIBS_GRANTED);
    const dibs_completion second = client.claim(keyed);
    EXPECT_EQ(second.outcome, DIBS_REJECTED);
    EXPECT_EQ(second.code, DIBS_EDUPLICATE);
    EXPECT_EQ(second.holder.claim, first.claim);
    EXPECT_EQ(dibs_release(client, &first.lease, DIBS_NOWAIT), DIBS_OK);
    EXPECT_EQ(client.claim(keyed).outcome, DIBS_GRANTED);
    client.await([](const auto& counters) { return counters.leased == 1; });
}

// The arena holds two blocks, and one payload that waits takes both.
TEST(ClientClaim, IsRejectedForNowWhileTheArenaIsFull) {
    const Folder folder;
    const Dibsd dibsd(
        folder,
        "[limits]\narena = 1024\n[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 1\n");
    ASSERT_TRUE(dibsd.ready());
    const Attached client(dibsd.socket(), "tokens");
    const dibs_completion held = client.claim();
    ASSERT_EQ(held.outcome, DIBS_GRANTED);
    const std::vector<char> body(600, 'x');
    dibs_claim_options carrying = Attached::asking(DIBS_FOREVER);
    carrying.body = body.data();
    carrying.body_size = body.size();
    client.submit(&carrying, 7);
    client.await([](const auto& pool) { return pool.queued == 1; });

    const dibs_completion full = client.claim(carrying);
    EXPECT_EQ(full.outcome, DIBS_REJECTED);
    EXPECT_EQ(full.code, DIBS_EARENA);
    EXPECT_GT(full.retry_after_ns, 0);
    EXPECT_EQ(client.counters().queued, 1U);

    // Who waits is not touched by it; and once he is granted, the room is there again.
    ASSERT_EQ(dibs_release(client, &held.lease, DIBS_NOWAIT), DIBS_OK);
    dibs_completion granted = {};
    ASSERT_EQ(dibs_reap(client, &granted, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(granted.user_data, 7U);
    ASSERT_EQ(granted.outcome, DIBS_GRANTED);
    ASSERT_EQ(dibs_release(client, &granted.lease, DIBS_FOREVER), DIBS_OK);
    const dibs_completion again = client.claim(carrying);
    EXPECT_EQ(again.outcome, DIBS_GRANTED);
    EXPECT_EQ(dibs_release(client, &again.lease, DIBS_FOREVER), DIBS_OK);
    client.await([](const auto& pool) { return pool.idle == 1 && pool.queued == 0; });
}

TEST(ClientLease, OfAnotherSessionIsNotReleasedAndItsHolderNamed) {
    const Folder folder;
    const Dibsd dibsd(folder, kTokens);
    const Attached holder(dibsd.socket(), "tokens");
    const Attached thief(dibsd.socket(), "tokens");
    const dibs_completion held = holder.claim();
    EXPECT_EQ(dibs_release(thief, &held.lease, DIBS_NOWAIT), DIBS_ENOTHOLDER);
    dibs_holder who = {};
    EXPECT_EQ(dibs_last_holder(thief, &who), DIBS_OK);
    EXPECT_EQ(who.pid, static_cast<uint32_t>(getpid()));
    EXPECT_EQ(who.claim, held.claim);
    dibs_lease stale = held.lease;
    stale.session += 1;  // unknown to the library: the broker judges
    stale.fence += 1;
    EXPECT_EQ(dibs_release(holder, &stale, DIBS_NOWAIT), DIBS_ESTALE);
    EXPECT_EQ(dibs_lease_state(holder, &held.lease, nullptr), DIBS_LIVE);
    EXPECT_EQ(dibs_release(holder, &held.lease, DIBS_FOREVER), DIBS_OK);
}

TEST(ClientLease, EndsWhenItIsNotKeptAliveAndIsKeptAliveByAKeepalive) {
    const Folder folder;
    const Dibsd dibsd(folder, kTokens);
    const Attached client(dibsd.socket(), "tokens");
    dibs_claim_options options = Attached::asking(DIBS_FOREVER);
    options.interval_ns = 3600 * DIBS_SECOND;
    const dibs_completion kept = client.claim(options);
    EXPECT_EQ(kept.interval_ns, 600 * DIBS_SECOND);  // cut by the pool
    options.interval_ns = DIBS_MILLISECOND;
    const dibs_completion lost = client.claim(options);
    int64_t granted = 0;
    EXPECT_EQ(dibs_keepalive(client, &kept.lease, 500 * DIBS_SECOND, DIBS_FOREVER, &granted),
              DIBS_OK);
    EXPECT_EQ(granted, 500 * DIBS_SECOND);
    dibs_completion event = {};
    ASSERT_EQ(dibs_reap(client, &event, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(event.kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(event.code, DIBS_EEXPIRED);
    EXPECT_EQ(event.lease.id, lost.lease.id);
    EXPECT_EQ(dibs_lease_state(client, &kept.lease, nullptr), DIBS_LIVE);
    EXPECT_EQ(dibs_keepalive(client, &lost.lease, 0, DIBS_FOREVER, nullptr), DIBS_ALREADY_ENDED);
}

// Tags are used again and again: the end of an old lease is never taken for a new one's.
TEST(ClientLease, OfAReusedTagIsAlive) {
    const Folder folder;
    const Dibsd dibsd(folder, kTokens);
    dibs_connect_options sizes = {};
    sizes.leases_max = 8;
    const Attached client(dibsd.socket(), "tokens", sizes);
    dibs_claim_options brief = Attached::asking(DIBS_FOREVER);
    brief.interval_ns = DIBS_MILLISECOND;
    for (int i = 0; i < 20; ++i) {
        const dibs_completion lost = client.claim(brief);
        ASSERT_EQ(lost.outcome, DIBS_GRANTED);
        dibs_completion event = {};
        ASSERT_EQ(dibs_reap(client, &event, 1, DIBS_FOREVER), 1);
        ASSERT_EQ(event.lease.id, lost.lease.id);
        const dibs_completion held = client.claim();
        ASSERT_EQ(dibs_lease_state(client, &held.lease, nullptr), DIBS_LIVE);
        ASSERT_EQ(dibs_release(client, &held.lease, DIBS_NOWAIT), DIBS_OK);
    }
}

TEST(ClientDeath, GivesTheSlotBackToWhoeverWaits) {
    const Folder folder;
    const Dibsd dibsd(folder, kTokens);
    const Attached client(dibsd.socket(), "tokens");
    Child child([&](const Child&) {
        const Attached holder(dibsd.socket(), "tokens");
        const dibs_completion held = holder.claim(Attached::asking(0, 2));
        static_cast<void>(held);
        for (;;)
            pause();
    });
    client.await([](const auto& pool) { return pool.leased == 2; });
    client.submit();
    client.await([](const auto& pool) { return pool.queued == 1; });
    child.kill();
    dibs_completion end = {};
    ASSERT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
}

TEST(ClientTimeout, IsHonouredWhileTheBrokerIsStoppedAndNothingLeaks) {
    const Folder folder;
    const Dibsd dibsd(folder, kTokens);
    const Attached client(dibsd.socket(), "tokens");
    dibsd.signal(SIGSTOP);
    EXPECT_EQ(client.claim_in_time(Attached::asking(DIBS_MILLISECOND)).outcome, DIBS_EXPIRED);
    EXPECT_EQ(client.claim_in_time(Attached::asking(0)).outcome, DIBS_EXPIRED);
    dibsd.signal(SIGCONT);
    // Both slots come back, whatever the broker made of the two claims meanwhile.
    const dibs_completion both = client.claim(Attached::asking(DIBS_FOREVER, 2));
    EXPECT_EQ(both.outcome, DIBS_GRANTED);
    EXPECT_EQ(dibs_release(client, &both.lease, DIBS_FOREVER), DIBS_OK);
    client.await([](const auto& pool) { return pool.idle == 2 && pool.queued == 0; });
}

TEST(ClientWait, EndsBrokerLostWhenTheBrokerDies) {
    const Folder folder;
    const Dibsd dibsd(folder, kTokens);
    const Attached client(dibsd.socket(), "tokens");
    const dibs_completion held = client.claim(Attached::asking(0, 2));
    ASSERT_EQ(held.outcome, DIBS_GRANTED);
    client.submit(nullptr, 5);
    client.await([](const auto& pool) { return pool.queued == 1; });
    dibsd.signal(SIGKILL);
    std::set<std::pair<int, int>> ends;
    dibs_completion end = {};
    while (dibs_reap(client, &end, 1, DIBS_FOREVER) == 1)
        ends.insert({end.kind, end.code});
    EXPECT_TRUE(ends.count({DIBS_CLAIM_ENDED, DIBS_EBROKERLOST}));
    EXPECT_TRUE(ends.count({DIBS_LEASE_ENDED, DIBS_EBROKERLOST}));
    EXPECT_EQ(dibs_claim(client, client.pool(), nullptr, &end), DIBS_EBROKERLOST);
}

TEST(ClientSession, ThatIsClosedGivesEverythingBack) {
    const Folder folder;
    const Dibsd dibsd(folder, kTokens);
    const Attached watcher(dibsd.socket(), "tokens");
    {
        const Attached client(dibsd.socket(), "tokens");
        EXPECT_EQ(client.claim(Attached::asking(0, 2)).outcome, DIBS_GRANTED);
        watcher.await([](const auto& pool) { return pool.leased == 2; });
    }
    watcher.await([](const auto& pool) { return pool.idle == 2; });
}

TEST(ClientSession, ClaimsFasterThanItReapsAndLosesNothing) {
    const Folder folder;
    const Dibsd dibsd(folder, "[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 64\n");
    const Attached client(dibsd.socket(), "tokens");
    std::vector<dibs_op> ops(64);
    uint64_t submitted = 0;
    uint64_t ended = 0;
    std::vector<dibs_completion> ends(64);
    while (ended < 20'000) {
        for (dibs_op& op : ops) {
            op = {};
            op.size = sizeof op;
            op.kind = DIBS_OP_CLAIM;
            op.pool = client.pool();
        }
        const int accepted = submitted < 20'000 ? dibs_submit(client, ops.data(), 64) : 0;
        if (accepted > 0) submitted += static_cast<uint64_t>(accepted);
        ASSERT_TRUE(accepted >= 0 || accepted == DIBS_EUNREAD || accepted == DIBS_EFULL)
            << dibs_reason_name(accepted);
        const int reaped = dibs_reap(client, ends.data(), 64, DIBS_FOREVER);
        ASSERT_GT(reaped, 0);
        for (size_t i = 0; i < static_cast<size_t>(reaped); ++i) {
            ASSERT_EQ(ends[i].outcome, DIBS_GRANTED);
            int code = DIBS_EFULL;
            while (code == DIBS_EFULL)
                code = dibs_release(client, &ends[i].lease, DIBS_NOWAIT);
            ASSERT_EQ(code, DIBS_OK);
            ++ended;
        }
    }
    while (ended < submitted) {
        const int reaped = dibs_reap(client, ends.data(), 64, DIBS_FOREVER);
        ASSERT_GT(reaped, 0);
        for (size_t i = 0; i < static_cast<size_t>(reaped); ++i) {
            int code = DIBS_EFULL;
            while (code == DIBS_EFULL)
                code = dibs_release(client, &ends[i].lease, DIBS_NOWAIT);
            ++ended;
        }
    }
    client.await([](const auto& pool) { return pool.idle == 64 && pool.queued == 0; });
    dibs_totals totals = {};
    totals.size = sizeof totals;
    EXPECT_EQ(dibs_pool_totals(client, client.pool(), &totals), DIBS_OK);
    EXPECT_EQ(totals.granted, submitted);
    EXPECT_EQ(totals.released, submitted);
    EXPECT_EQ(totals.net_found_work, 0U);
}

}  // namespace
}  // namespace dibs::test
