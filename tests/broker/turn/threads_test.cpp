// tests/broker/turn/threads_test.cpp -- the turn and its clients as threads on one mapping, so that
// the thread sanitizer sees both sides of every shared word.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "broker/broker.hpp"
#include "broker/turn/turn.hpp"
#include "shm/memfd.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {
namespace {

using shm::CompletionKind;
using shm::Op;
using shm::Outcome;

Config config_with(const std::string& text) {
    ConfigResult result = parse_config(text, "test");
    EXPECT_TRUE(result.mistakes.empty());
    return std::move(result.config);
}

// A turn in a thread; the test is the control thread.
class TurnThread {
  public:
    explicit TurnThread(const std::string& text)
        : config_(config_with(text)),
          state_({}, config_.limits),
          core_(state_.bytes()),
          board_(config_.limits.pools),
          exchange_(core_.sessions_max()),
          turn_(core_, board_, exchange_) {
        Inheritance nothing;
        turn_.prepare(config_, nothing);
        thread_ = std::thread([this] { turn_.serve(); });
    }
    ~TurnThread() {
        exchange_.ask({.kind = Request::Kind::kStop});
        while (report().kind != Report::Kind::kFinished) {
        }
        thread_.join();
    }
    TurnThread(const TurnThread&) = delete;
    TurnThread& operator=(const TurnThread&) = delete;

    std::unique_ptr<RawClient> attach(uid_t uid = geteuid()) {
        Peer peer;
        peer.uid = uid;
        peer.pid = static_cast<uint32_t>(getpid());
        peer.pidfd = shm::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
        owned_.push_back(std::make_unique<Session>(std::move(peer), shm::SessionSizes{}));
        Session& session = *owned_.back();
        exchange_.ask({.kind = Request::Kind::kSession, .session = &session});
        EXPECT_EQ(report().kind, Report::Kind::kOpened);
        shm::Welcome welcome;
        welcome.submission_entries = session.sizes.submission_entries;
        welcome.completion_entries = session.sizes.completion_entries;
        welcome.up_payload = session.sizes.up_payload;
        welcome.down_payload = session.sizes.down_payload;
        welcome.tags = session.sizes.tags;
        welcome.pools_max = board_.pools_max();
        const auto* board = reinterpret_cast<const std::byte*>(&board_.head());
        return std::make_unique<RawClient>(RawClient::Mapped{session.up_mapping.bytes().data(),
                                                             session.down_mapping.bytes().data(),
                                                             board,
                                                             session.bell.get()},
                                           welcome);
    }
    uint64_t net_found_work() const { return board_.head().net_found_work.load(); }
    // By the word of other users' clients.
    uint64_t net_reported() {
        AdminJob job;
        job.request.ask = admin::Ask::status;
        job.request.measured = true;
        exchange_.ask({.kind = Request::Kind::kAdmin, .job = &job});
        EXPECT_EQ(report().kind, Report::Kind::kAdmin);
        return job.answer.status->net_reported;
    }

  private:
    Report report() {
        Report report;
        while (!exchange_.next(report)) {
            struct pollfd attention = {exchange_.control().fd(), POLLIN, 0};
            (void)poll(&attention, 1, -1);
            exchange_.control().answer();
        }
        return report;
    }

    Config config_;
    StateSegment state_;
    core::Core core_;
    BoardSegment board_;
    Exchange exchange_;
    Turn turn_;
    std::vector<std::unique_ptr<Session>> owned_;
    std::thread thread_;
};

uint32_t slot_of(const RawClient& client, const shm::Completion& granted) {
    return reinterpret_cast<const shm::GrantSlot*>(client.room(granted.data) +
                                                   sizeof(shm::GrantHead))
        ->number;
}

TEST(TurnThreads, NeverGiveASlotTwiceAndLoseNoWakeUp) {
    TurnThread turn("[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 2\n");
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 4; ++i)
        clients.push_back(turn.attach());
    std::atomic<int> holders[2] = {};
    std::atomic<int> granted_twice = 0;
    std::vector<std::thread> threads;
    for (auto& client : clients) {
        threads.emplace_back([&] {
            for (uint16_t round = 0; round < 300; ++round) {
                client->claim(round % 8);
                const auto granted = client->wait();
                ASSERT_EQ(granted->outcome, Outcome::kGranted);
                std::atomic<int>& holder = holders[slot_of(*client, *granted)];
                if (holder.fetch_add(1) != 0) ++granted_twice;
                holder.fetch_sub(1);
                client->release(*granted);
                ASSERT_EQ(client->wait()->kind, CompletionKind::kResult);
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(granted_twice, 0);
    EXPECT_EQ(turn.net_found_work(), 0U);
    clients[0]->await_pool(0, [](const auto& pool) { return pool.idle == 2 && pool.queued == 0; });
}

TEST(TurnThreads, AskASilentSessionToRingThoughAnotherKeepsThemBusy) {
    TurnThread turn("[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 4\n");
    const auto silent = turn.attach();
    const auto busy = turn.attach();
    silent->claim(1);
    ASSERT_EQ(silent->wait()->outcome, Outcome::kGranted);
    std::atomic<bool> over = false;
    std::thread talking([&] {
        while (!over) {
            busy->claim(1);
            busy->release(*busy->wait());
            (void)busy->wait();
        }
    });
    while (silent->down().need_wakeup.load() == 0)
        sched_yield();
    silent->claim(2);  // rings
    EXPECT_TRUE(silent->wait());
    over = true;
    talking.join();
    EXPECT_EQ(turn.net_found_work(), 0U);
}

// Nobody rings for what a session says while it sits out: the broker has to come by itself, though
// it sleeps and nothing else is due.
TEST(TurnThreads, ComeBackToWhoSitsOut) {
    TurnThread turn(
        "throttle = \"2ms\"\nspin = \"0us\"\n"
        "[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 1\n");
    const auto babbler = turn.attach();
    constexpr int kRounds = 12;
    constexpr uint16_t kNoPool = 7;
    for (int round = 0; round < kRounds; ++round) {
        for (uint16_t tag = 0; tag < 8; ++tag)
            babbler->claim(tag, kNoPool);
        for (int answer = 0; answer < 8; ++answer)
            ASSERT_EQ(babbler->wait()->reason, shm::Reason::kUnknownPool);
    }
    babbler->claim(1);
    EXPECT_EQ(babbler->wait()->outcome, Outcome::kGranted);
    EXPECT_EQ(turn.net_found_work(), 0U);
}

// A client that says that its safety net had to ring, for an entry that lay there while the broker
// slept, may have let it lie: that a wake-up was lost, only who may do all to the broker proves.
TEST(TurnThreads, CountLostWakeUpsOfOtherUsersApart) {
    TurnThread turn("spin = \"0us\"\n[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 4\n");
    const auto says_so = [](RawClient& client, uint16_t tag) {
        while (client.down().need_wakeup.load() == 0)
            sched_yield();
        client.up().net_rings.store(client.up().net_rings.load() + 1);
        client.claim(tag);  // rings
        const auto granted = client.wait();
        ASSERT_EQ(granted->outcome, Outcome::kGranted);
        client.release(*granted);
        ASSERT_EQ(client.wait()->kind, CompletionKind::kResult);
    };
    // Again, where the broker had set its word and was about to sleep: then it was awake.
    const auto other = turn.attach(geteuid() + 1);
    while (turn.net_reported() + turn.net_found_work() == 0)
        says_so(*other, 1);
    EXPECT_EQ(turn.net_found_work(), 0U);
    EXPECT_EQ(turn.net_reported(), 1U);
    const auto own = turn.attach();
    while (turn.net_reported() + turn.net_found_work() == 1)
        says_so(*own, 1);
    EXPECT_EQ(turn.net_found_work(), 1U);
    EXPECT_EQ(turn.net_reported(), 1U);
}

TEST(TurnThreads, CarryAssignmentsAnswersAndEventsBetweenWorkerAndClient) {
    TurnThread turn(
        "[[pool]]\nname = \"web\"\nkind = \"worker\"\npayload_max = 64\nanswer_max = 8\n"
        "reservation_ttl = \"1h\"\n");
    const auto worker = turn.attach();
    const auto client = turn.attach();
    const auto slot = worker->announce(0, true);
    ASSERT_EQ(slot->kind, CompletionKind::kSlot);
    constexpr int kRounds = 200;
    std::thread working([&] {
        for (int round = 0; round < kRounds;) {
            const auto told = worker->wait();
            if (told->kind != CompletionKind::kAssign) continue;
            worker->worker_word(Op::kConfirm, told->id, told->fence, shm::OpFlag::kQuiet);
            worker->worker_word(
                Op::kDone, told->id, told->fence, shm::OpFlag::kQuiet | shm::OpFlag::kThenReady);
            ++round;
        }
    });
    for (int round = 0; round < kRounds; ++round) {
        const auto tag = static_cast<uint16_t>(round % 256);
        client->claim(tag);
        const auto granted = client->wait();
        ASSERT_EQ(granted->outcome, Outcome::kGranted);
        EXPECT_EQ(client->wait_event(tag) & 0xff, shm::LeaseEvent::kEnded);
    }
    working.join();
    EXPECT_EQ(turn.net_found_work(), 0U);
}

TEST(BrokerThreads, ServeThroughTheirSocketUntilTheyAreStopped) {
    const Folder folder;
    Config config = config_with("[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 1\n");
    config.socket = folder.path() + "/dibs.sock";
    Broker broker(std::move(config), shm::Descriptor(), false);
    std::thread thread([&] { broker.run(); });
    RawClient client(broker.socket_path());
    ASSERT_TRUE(client.attached());
    client.claim(1);
    const auto granted = client.wait();
    EXPECT_EQ(granted->outcome, Outcome::kGranted);
    broker.stop();
    client.claim(2);
    EXPECT_EQ(client.wait()->reason, shm::Reason::kDraining);
    client.release(*granted);
    thread.join();
    EXPECT_EQ(client.wait_end(), shm::Reason::kDraining);
}

}  // namespace
}  // namespace dibs::test
