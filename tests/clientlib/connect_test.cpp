// tests/clientlib/connect_test.cpp -- how a session begins, does not begin, and ends.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <functional>

#include "broker/admission/socket_path.hpp"
#include "clientlib/admin_connection.hpp"
#include "clientlib/session.hpp"
#include "shm/packet.hpp"
#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

struct Attempt {
    char text[256] = {};
    dibs_connect_options options = {};
    dibs_session* session = nullptr;

    explicit Attempt(const char* path) {
        options.size = sizeof options;
        options.socket_path = path;
        options.error_text = text;
        options.error_text_size = sizeof text;
    }
    int connect() { return dibs_connect(&options, &session); }
};

TEST(Connect, OpensAndClosesASession) {
    FakeBroker broker;
    Attempt attempt(broker.path().c_str());
    ASSERT_EQ(attempt.connect(), DIBS_OK);
    EXPECT_EQ(dibs_end_code(attempt.session), 0);
    EXPECT_EQ(dibs_close(attempt.session), DIBS_OK);
    broker.wait_for(1);
    EXPECT_EQ(broker.seen().back().op, Op::kClose);
}

// The BOARD that it names is larger than the one that comes with it: it cannot be mapped.
TEST(Connect, ThatFailsBehindTheWelcomeClosesTheBrokersSession) {
    FakeBroker broker;
    const shm::SessionSizes sizes = shm::wanted_sizes(shm::Hello{});
    shm::Welcome welcome;
    welcome.submission_entries = sizes.submission_entries;
    welcome.completion_entries = sizes.completion_entries;
    welcome.up_payload = sizes.up_payload;
    welcome.down_payload = sizes.down_payload;
    welcome.tags = sizes.tags;
    welcome.pools_max = shm::kPoolsMax;
    welcome.up_size = shm::plan_up(sizes).size;
    welcome.down_size = shm::plan_down(sizes).size;
    welcome.board_size = uint64_t{1} << 40;
    broker.answer_with({reinterpret_cast<const char*>(&welcome), sizeof welcome});
    Attempt attempt(broker.path().c_str());
    EXPECT_EQ(attempt.connect(), DIBS_ESYSTEM);
    broker.wait_for(1);
    EXPECT_EQ(broker.seen().back().op, Op::kClose);
}

// With a ring of eight submissions; null if it cannot be.
dibs_session* attach_to_stopped(FakeBroker& broker) {
    dibs_connect_options sizes = {};
    sizes.size = sizeof sizes;
    sizes.socket_path = broker.path().c_str();
    sizes.submission_entries = 8;
    sizes.completion_entries = 64;
    dibs_session* session = nullptr;
    EXPECT_EQ(dibs_connect(&sizes, &session), DIBS_OK);
    broker.hold();
    return session;
}

// Of what it granted to them afterwards nobody else would ever say that it is over.
TEST(Close, ReachesAStoppedBrokerBehindARingOfClaims) {
    FakeBroker broker;
    dibs_session* session = attach_to_stopped(broker);
    ASSERT_NE(session, nullptr);
    std::vector<dibs_op> ops(8, operation(DIBS_OP_CLAIM, 1));
    const int claims = dibs_submit(session, ops.data(), ops.size());
    EXPECT_EQ(claims, 7);
    EXPECT_EQ(dibs_submit(session, ops.data(), 1), DIBS_EFULL);
    EXPECT_EQ(dibs_close(session), DIBS_OK);
    broker.go_on();
    broker.wait_for(8);
    EXPECT_EQ(broker.seen().back().op, Op::kClose);
}

// Neither what was abandoned nor its cancels take close's place.
TEST(Close, ReachesAStoppedBrokerBehindARingOfCancels) {
    FakeBroker broker;
    dibs_session* session = attach_to_stopped(broker);
    ASSERT_NE(session, nullptr);
    dibs_claim_options now = {};
    now.size = sizeof now;
    dibs_completion end = {};
    while (dibs_claim(session, 0, &now, &end) == DIBS_OK) {
        ASSERT_EQ(end.outcome, DIBS_EXPIRED);
    }
    EXPECT_EQ(dibs_close(session), DIBS_OK);
    broker.go_on();
    broker.wait_for(8);
    const std::vector<Submission> seen = broker.seen();
    EXPECT_EQ(seen.size(), 8U);
    EXPECT_EQ(seen[1].op, Op::kCancel);
    EXPECT_EQ(seen.back().op, Op::kClose);
}

TEST(Connect, OpensASessionOverASocketThatIsConnectedAlready) {
    FakeBroker broker;
    Attempt attempt(broker.path().c_str());
    int connected = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    attempt.options.connected = &connected;
    EXPECT_EQ(attempt.connect(), DIBS_ENOBROKER);  // it is not
    EXPECT_NE(fcntl(connected, F_GETFD), -1);      // and still the caller's
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, broker.path().c_str(), sizeof address.sun_path - 1);
    const auto* name = reinterpret_cast<const sockaddr*>(&address);
    ASSERT_EQ(connect(connected, name, sizeof address), 0);
    ASSERT_EQ(attempt.connect(), DIBS_OK);
    EXPECT_EQ(dibs_close(attempt.session), DIBS_OK);
    EXPECT_EQ(fcntl(connected, F_GETFD), -1);  // it was the session's
    connected = -1;
    EXPECT_EQ(attempt.connect(), DIBS_EARGUMENT);
}

TEST(Connect, FindsTheSocketInTheEnvironment) {
    FakeBroker broker;
    setenv("DIBS_SOCKET", broker.path().c_str(), 1);
    dibs_session* session = nullptr;
    EXPECT_EQ(dibs_connect(nullptr, &session), DIBS_OK);
    EXPECT_EQ(dibs_close(session), DIBS_OK);
    unsetenv("DIBS_SOCKET");
}

void set_or_unset(const char* name, const char* value) {
    if (value == nullptr) {
        unsetenv(name);
    } else {
        setenv(name, value, 1);
    }
}

TEST(SocketPath, IsWhatTheEnvironmentSaysForLibraryAndBrokerAlike) {
    const struct {
        const char* socket;
        const char* runtime;
        const char* path;
    } cases[] = {
        {"/a/b.sock", "/run/user/7", "/a/b.sock"},
        {"/a/b.sock", nullptr, "/a/b.sock"},
        {"", "/run/user/7", "/run/user/7/dibs/dibs.sock"},
        {nullptr, "/run/user/7", "/run/user/7/dibs/dibs.sock"},
        {"", "", "/run/dibs/dibs.sock"},
        {nullptr, "", "/run/dibs/dibs.sock"},
        {"", nullptr, "/run/dibs/dibs.sock"},
        {nullptr, nullptr, "/run/dibs/dibs.sock"},
    };
    const char* before = std::getenv("XDG_RUNTIME_DIR");
    const std::string kept = before == nullptr ? "" : before;
    for (const auto& one : cases) {
        set_or_unset("DIBS_SOCKET", one.socket);
        set_or_unset("XDG_RUNTIME_DIR", one.runtime);
        sockaddr_un address = {};
        EXPECT_EQ(client::broker_address({}, &address), DIBS_OK);
        EXPECT_STREQ(address.sun_path, one.path);
        EXPECT_EQ(default_socket(), one.path);
    }
    set_or_unset("DIBS_SOCKET", nullptr);
    set_or_unset("XDG_RUNTIME_DIR", before == nullptr ? nullptr : kept.c_str());
}

TEST(Connect, SaysThatNobodyListens) {
    Attempt attempt("/tmp/dibs-there-is-no-such-socket");
    EXPECT_EQ(attempt.connect(), DIBS_ENOBROKER);
    EXPECT_EQ(attempt.session, nullptr);
    EXPECT_STREQ(attempt.text, "/tmp/dibs-there-is-no-such-socket: no broker listens there");
}

TEST(Connect, RefusesAPathThatDoesNotFitASocket) {
    const std::string path(200, 'x');
    Attempt attempt(path.c_str());
    EXPECT_EQ(attempt.connect(), DIBS_ENAME);
}

TEST(Connect, GivesUpOnABrokerThatSaysNothing) {
    FakeBroker broker;
    broker.answer_with("");
    Attempt attempt(broker.path().c_str());
    attempt.options.timeout_ns = 20 * DIBS_MILLISECOND;
    EXPECT_EQ(attempt.connect(), DIBS_ENOBROKER);
}

// The kernel tells first that the broker hung up on something unread, then what it had said.
TEST(Connect, HearsTheLastWordsOfABrokerThatDoesNotReadTheGreeting) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_EQ(send(ends[0], "", 1, MSG_NOSIGNAL), 1);
    shm::Farewell farewell;
    farewell.code = shm::FarewellCode::kDraining;
    strcpy(farewell.text, "this broker is about to stop");
    ASSERT_EQ(send(ends[1], &farewell, sizeof farewell, MSG_NOSIGNAL), ssize_t{sizeof farewell});
    ASSERT_EQ(close(ends[1]), 0);
    Attempt attempt(nullptr);
    attempt.options.connected = &ends[0];
    EXPECT_EQ(attempt.connect(), DIBS_EDRAINING);
    EXPECT_STREQ(attempt.text, "this broker is about to stop");
    EXPECT_EQ(close(ends[0]), 0);
}

TEST(LastWords, AreReadAfterTheHangUp) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_EQ(send(ends[0], "", 1, MSG_NOSIGNAL), 1);
    ASSERT_EQ(send(ends[1], "enough", 6, MSG_NOSIGNAL), 6);
    ASSERT_EQ(close(ends[1]), 0);
    char said[8] = {};
    EXPECT_EQ(shm::receive_packet(ends[0], said, sizeof said), 6);
    EXPECT_STREQ(said, "enough");
    EXPECT_EQ(shm::receive_packet(ends[0], said, sizeof said), 0);
    EXPECT_EQ(close(ends[0]), 0);
}

TEST(Connect, RefusesAnAnswerThatIsNoWelcome) {
    FakeBroker broker;
    broker.answer_with("HTTP/1.1 400 Bad Request");
    Attempt attempt(broker.path().c_str());
    EXPECT_EQ(attempt.connect(), DIBS_EHANDSHAKE);
}

TEST(Connect, RefusesAWelcomeWhoseSizesDoNotFit) {
    FakeBroker broker;
    shm::Welcome welcome;
    welcome.submission_entries = 100;
    broker.answer_with({reinterpret_cast<const char*>(&welcome), sizeof welcome});
    Attempt attempt(broker.path().c_str());
    EXPECT_EQ(attempt.connect(), DIBS_EHANDSHAKE);
    EXPECT_EQ(attempt.text, broker.path() + ": the welcome's sizes do not fit together");
}

TEST(Connect, PassesOnWhatAFarewellSays) {
    FakeBroker broker;
    shm::Farewell farewell;
    farewell.code = shm::FarewellCode::kVersion;
    std::strcpy(farewell.text, "layout 1 here, 2 there");
    broker.answer_with({reinterpret_cast<const char*>(&farewell), sizeof farewell});
    Attempt attempt(broker.path().c_str());
    EXPECT_EQ(attempt.connect(), DIBS_EVERSION);
    EXPECT_EQ(attempt.text, broker.path() + ": layout 1 here, 2 there");

    farewell.code = shm::FarewellCode::kFull;
    broker.answer_with({reinterpret_cast<const char*>(&farewell), sizeof farewell});
    EXPECT_EQ(attempt.connect(), DIBS_ELIMIT);  // no row or memory for another session
}

TEST(Connect, RefusesBadArgumentsEachWithItsCode) {
    FakeBroker broker;
    Attempt attempt(broker.path().c_str());
    EXPECT_EQ(dibs_connect(&attempt.options, nullptr), DIBS_EARGUMENT);
    attempt.options.timeout_ns = -1;
    EXPECT_EQ(attempt.connect(), DIBS_ENEGATIVE);
    attempt.options.timeout_ns = 0;
    attempt.options.size = 8;
    EXPECT_EQ(attempt.connect(), DIBS_ESIZE);
    EXPECT_EQ(dibs_close(nullptr), DIBS_OK);
    EXPECT_EQ(dibs_end_code(nullptr), DIBS_EARGUMENT);
}

TEST(Options, OfANewerCallerAreTakenAsLongAsTheyAskForNothing) {
    FakeBroker broker;
    struct Newer {
        dibs_connect_options known = {};
        uint64_t added = 0;
    } newer;
    newer.known.size = sizeof newer;
    newer.known.socket_path = broker.path().c_str();
    dibs_session* session = nullptr;
    EXPECT_EQ(dibs_connect(&newer.known, &session), DIBS_OK);
    EXPECT_EQ(dibs_close(session), DIBS_OK);
    newer.added = 1;
    EXPECT_EQ(dibs_connect(&newer.known, &session), DIBS_ESIZE);
}

TEST(Fork, ChildIsRefusedByEveryFunctionAndTheParentGoesOn) {
    FakeBroker broker;
    Client client(broker);
    const dibs_completion held = client.claim();
    const pid_t child = fork();
    if (child == 0) {
        dibs_session* session = client.get();
        dibs_completion end = {};
        dibs_op op = operation(DIBS_OP_CLAIM, 0);
        dibs_assignment assignment;
        dibs_counters counters = {};
        counters.size = sizeof counters;
        uint32_t pool = 0;
        uint64_t slot = 0;
        const char* value = nullptr;
        dibs_pool_limits limits = {};
        limits.size = sizeof limits;
        dibs_totals totals = {};
        totals.size = sizeof totals;
        dibs_share share = {};
        share.size = sizeof share;
        dibs_explanation why = {};
        why.size = sizeof why;
        dibs_lease lease = held.lease;
        dibs_holder holder = {};
        dibs_slot about = {};
        int64_t left = 0;
        const void* answer = nullptr;
        size_t size = 0;
        dibs_latency latency = {};
        latency.size = sizeof latency;
        dibs_wakeups wakeups = {};
        wakeups.size = sizeof wakeups;
        const int codes[] = {dibs_claim(session, 0, nullptr, &end),
                             dibs_submit(session, &op, 1),
                             dibs_reap(session, &end, 1, 0),
                             dibs_cancel(session, 1),
                             dibs_release(session, &held.lease, 0),
                             dibs_fail(session, &held.lease, 0),
                             dibs_keepalive(session, &held.lease, 0, 0, nullptr),
                             dibs_lease_state(session, &held.lease, nullptr),
                             dibs_lease_attribute(session, &held.lease, 0, "k", &value),
                             dibs_pool(session, "gpu", &pool),
                             dibs_snapshot(session, 0, &counters),
                             dibs_fd(session),
                             dibs_arm(session),
                             dibs_dispatch(session),
                             dibs_announce(session, 0, nullptr, 1, &slot),
                             dibs_next_assignment(session, 0, &assignment),
                             dibs_ready(session, 1, 1, 0),
                             dibs_describe(session, 0, &limits),
                             dibs_pool_totals(session, 0, &totals),
                             dibs_account(session, "a", &pool),
                             dibs_account_share(session, 0, &share),
                             dibs_explain(session, 1, &why),
                             dibs_adopt(session, 1, 1, 1, &lease),
                             dibs_last_holder(session, &holder),
                             dibs_lease_remaining(session, &held.lease, &left),
                             dibs_lease_slot(session, &held.lease, 0, &about),
                             dibs_lease_answer(session, &held.lease, 0, &answer, &size),
                             dibs_confirm(session, 1, 1, nullptr, 0, 0),
                             dibs_refuse(session, 1, 1, 0, 0, 0),
                             dibs_done(session, 1, 1, nullptr, 0, 0, 0),
                             dibs_withdraw(session, 1, 0),
                             dibs_protect(session, 1, 1, 0),
                             dibs_pool_latency(session, 0, &latency),
                             dibs_reported_latency(session, &latency),
                             dibs_session_latency(session, &latency),
                             dibs_session_wakeups(session, &wakeups),
                             dibs_end_code(session),
                             dibs_close(session)};
        static_assert(sizeof codes / sizeof *codes == 38);
        for (const int code : codes) {
            if (code != DIBS_EFORK) _exit(static_cast<int>(&code - codes) + 1);
        }
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "which of them, from 1";
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
}

TEST(SessionEnd, ByTheBrokerEndsClaimsBrokerLostAndNamesTheReason) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        if (entry.op == Op::kClaim) session.end(Reason::kMalformed);
    });
    Client client(broker);
    const dibs_completion end = client.claim();
    EXPECT_EQ(end.outcome, DIBS_BROKER_LOST);
    EXPECT_EQ(end.code, DIBS_ESESSION);
    EXPECT_EQ(dibs_end_code(client), DIBS_EMALFORMED);
    dibs_completion again = {};
    EXPECT_EQ(dibs_claim(client, 0, nullptr, &again), DIBS_ESESSION);
    EXPECT_EQ(dibs_reap(client, &again, 1, 0), DIBS_ESESSION);
}

// Every lease of everybody has gone: whoever holds one is to know it from a session's end.
TEST(SessionEnd, WithTheBrokersStateSaysSo) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        if (entry.op == Op::kClaim) session.end(Reason::kStateLost);
    });
    Client client(broker);
    const dibs_completion end = client.claim();
    EXPECT_EQ(end.outcome, DIBS_BROKER_LOST);
    EXPECT_EQ(end.code, DIBS_ESTATELOST);
    dibs_completion again = {};
    EXPECT_EQ(dibs_claim(client, 0, nullptr, &again), DIBS_ESTATELOST);
    EXPECT_EQ(dibs_end_code(client), DIBS_ESTATELOST);
}

// Work, keepalive, work: nothing of that sleeps in the library.
TEST(SessionEnd, ByTheBrokerIsSeenByAHolderThatNeverWaits) {
    FakeBroker broker;
    for (const bool keeps_alive : {false, true}) {
        SCOPED_TRACE(keeps_alive);
        Client client(broker);
        const dibs_completion held = client.claim();
        EXPECT_EQ(dibs_keepalive(client, &held.lease, 0, DIBS_NOWAIT, nullptr), DIBS_OK);
        EXPECT_EQ(dibs_lease_state(client, &held.lease, nullptr), DIBS_LIVE);
        broker.call([](FakeSession& session) { session.end(Reason::kDraining); });
        if (keeps_alive) {
            EXPECT_EQ(dibs_keepalive(client, &held.lease, 0, DIBS_NOWAIT, nullptr), DIBS_ESESSION);
        }
        int code = 0;
        EXPECT_EQ(dibs_lease_state(client, &held.lease, &code), DIBS_ENDED);
        EXPECT_EQ(code, DIBS_ESESSION);
        EXPECT_EQ(dibs_end_code(client), DIBS_EDRAINING);
    }
}

// Every way to ask without waiting, each in a session whose net is due.
TEST(SessionEnd, ByTheBrokersDeathIsSeenByWhoNeverWaits) {
    const std::function<int(dibs_session*, const dibs_lease*)> ways[] = {
        [](dibs_session* session, const dibs_lease*) { return dibs_end_code(session); },
        [](dibs_session* session, const dibs_lease* lease) {
            return dibs_keepalive(session, lease, 0, DIBS_NOWAIT, nullptr);
        },
        [](dibs_session* session, const dibs_lease*) {
            dibs_completion out = {};
            EXPECT_EQ(dibs_reap(session, &out, 1, DIBS_NOWAIT), 1);
            EXPECT_EQ(out.kind, DIBS_LEASE_ENDED);
            return out.code;
        },
        [](dibs_session* session, const dibs_lease*) {
            dibs_assignment assignment = {};
            return dibs_next_assignment(session, DIBS_NOWAIT, &assignment);
        }};
    for (const auto& way : ways) {
        SCOPED_TRACE(&way - ways);
        FakeBroker broker;
        Client client(broker);
        const dibs_completion held = client.claim();
        broker.die();
        client.get()->net_due_ns = 0;
        EXPECT_EQ(way(client, &held.lease), DIBS_EBROKERLOST);
        EXPECT_EQ(dibs_lease_state(client, &held.lease, nullptr), DIBS_ENDED);
    }
}

TEST(SessionEnd, ByTheBrokersDeathAnswersEverythingThatIsOutstanding) {
    FakeBroker broker;
    Client client(broker);
    const dibs_completion held = client.claim();
    broker.hold();
    dibs_op ops[2] = {operation(DIBS_OP_CLAIM, 11), operation(DIBS_OP_RELEASE, 12)};
    ops[1].lease = &held.lease;
    ASSERT_EQ(dibs_submit(client, ops, 2), 2);
    broker.die();
    dibs_completion ends[4] = {};
    ASSERT_EQ(dibs_reap(client, ends, 4, DIBS_FOREVER), 2);
    EXPECT_EQ(ends[0].user_data, 11U);
    EXPECT_EQ(ends[0].outcome, DIBS_BROKER_LOST);
    EXPECT_EQ(ends[1].user_data, 12U);
    EXPECT_EQ(ends[1].code, DIBS_EBROKERLOST);
    EXPECT_EQ(dibs_reap(client, ends, 4, DIBS_FOREVER), DIBS_EBROKERLOST);
    EXPECT_EQ(dibs_end_code(client), DIBS_EBROKERLOST);
}

}  // namespace
}  // namespace dibs::test
