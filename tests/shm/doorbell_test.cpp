// tests/shm/doorbell_test.cpp -- the two doorbells under sleep and wake, with no net beneath: a
// lost wake-up would leave a sleeper until its long timeout, and is counted.
// SPDX-License-Identifier: Apache-2.0
#include "shm/doorbell.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "shm/cpu.hpp"
#include "shm/handshake.hpp"
#include "shm/pause.hpp"
#include "shm/ring.hpp"
#include "tests/shm/mapping.hpp"

namespace dibs::shm {
namespace {

constexpr SessionSizes kSizes = {8, 16, 4096, 4096, 8};
constexpr uint64_t kLongNs = 20'000'000'000;  // nobody sleeps that long unless a wake was lost

struct Session {
    test::SharedMemory up_memory{plan_up(kSizes).size};
    test::SharedMemory down_memory{plan_down(kSizes).size};
    test::Mapping broker_up{up_memory};
    test::Mapping broker_down{down_memory};
    test::Mapping client_up{up_memory};
    test::Mapping client_down{down_memory, PROT_READ};
    int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    Session() {
        write_up_head(*broker_up.as<UpHead>(), kSizes, 0, 1);
        write_down_head(*broker_down.as<DownHead>(), kSizes, 0, 1, 1);
    }
    ~Session() { close(bell); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
};

// The broker's side: sleeps whenever there is nothing, until it has answered `claims`.
uint64_t serve(Session& session, uint64_t claims) {
    UpHead& up = *session.broker_up.as<UpHead>();
    DownHead& down = *session.broker_down.as<DownHead>();
    SubmissionConsumer submissions(
        session.broker_up.as<SubmissionEntry>(plan_up(kSizes).submission), 8, 0);
    CompletionProducer completions(
        session.broker_down.as<CompletionEntry>(plan_down(kSizes).completion), 16, 0);
    uint64_t lost = 0;
    while (submissions.head() < claims) {
        Submission entry;
        const Poll poll = submissions.pop(entry);
        if (poll == Poll::kNothing) {
            arm_submissions(down);
            if (published_submissions(up) == submissions.head()) {
                pollfd bell = {session.bell, POLLIN, 0};
                if (::poll(&bell, 1, 20'000) == 0) ++lost;
                uint64_t count = 0;
                EXPECT_GE(read(session.bell, &count, sizeof count), 0);
            }
            disarm_submissions(down);
            continue;
        }
        EXPECT_EQ(poll, Poll::kEntry);
        EXPECT_TRUE(completions.release_to(read_completions(up)));
        EXPECT_GT(completions.room(), 0U);
        Completion completion;
        completion.user_data = entry.user_data;
        completions.push(completion);
        commit_submissions(down, submissions.head());
        if (publish_completions(down, up, completions.tail()) == ClientSleep::kFutex) {
            wake_client(down);
        }
    }
    return lost;
}

// The client's side: one claim after the other, asleep until each is answered.
uint64_t ask(Session& session, uint64_t claims) {
    UpHead& up = *session.client_up.as<UpHead>();
    const DownHead& down = *session.client_down.as<DownHead>();
    SubmissionProducer submissions(
        session.client_up.as<SubmissionEntry>(plan_up(kSizes).submission), 8, 0);
    CompletionConsumer completions(
        session.client_down.as<CompletionEntry>(plan_down(kSizes).completion), 16, 0);
    uint64_t lost = 0;
    for (uint64_t i = 0; i < claims; ++i) {
        EXPECT_TRUE(submissions.release_to(committed_submissions(down)));
        Submission entry;
        entry.user_data = i;
        submissions.push(entry);
        if (publish_submissions(up, down, submissions.tail())) {
            const uint64_t one = 1;
            EXPECT_EQ(write(session.bell, &one, sizeof one), 8);
        }
        Completion completion;
        while (completions.pop(completion) != Poll::kEntry) {
            const uint32_t seen = arm_completions(up, down, ClientSleep::kFutex);
            if (published_completions(down).tail == completions.head() &&
                sleep_on_completions(down, seen, kLongNs) == FutexWait::kTimedOut) {
                ++lost;
            }
            disarm_completions(up);
        }
        EXPECT_EQ(completion.user_data, i);
        release_completions(up, completions.head());
        if (i % 16 == 0) sched_yield();
    }
    return lost;
}

TEST(Doorbell, LosesNoWakeUpInTwentyThousandSleeps) {
    constexpr uint64_t kClaims = 20'000;
    Session session;
    uint64_t lost_by_broker = 0;
    std::thread broker([&] { lost_by_broker = serve(session, kClaims); });
    const uint64_t lost_by_client = ask(session, kClaims);
    broker.join();
    EXPECT_EQ(lost_by_client, 0U);
    EXPECT_EQ(lost_by_broker, 0U);
}

// Two threads that go on together. Who waits spins, because the other is about to come; and gives
// way in the end, since it may have no CPU.
class Pair {
  public:
    void meet() {
        const uint32_t round = met_.load(std::memory_order_relaxed) / 2;
        met_.fetch_add(1, std::memory_order_acq_rel);
        for (int spins = 0; met_.load(std::memory_order_acquire) / 2 == round; ++spins) {
            pause();
            if (spins % 10'000 == 9'999) sched_yield();
        }
    }

  private:
    std::atomic<uint32_t> met_{0};
};

// Binds this thread to the n-th CPU that the process may use, if there are two.
void stay_on(int n) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed) || n-- != 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        (void)sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

// A CPU lets a load overtake a store that it has not yet carried out, here most of all: each side's
// word lies in the other's cache when it is stored.
TEST(Doorbell, NeverLetsTheTwoSidesMissEachOther) {
    constexpr uint64_t kRounds = 100'000;
    Session session;
    Pair pair;
    bool rung = false;
    uint64_t seen = 0;
    uint64_t missed = 0;
    std::thread broker([&] {
        stay_on(1);
        const UpHead& up = *session.broker_up.as<UpHead>();
        DownHead& down = *session.broker_down.as<DownHead>();
        for (uint64_t round = 1; round <= kRounds; ++round) {
            (void)published_submissions(up);
            pair.meet();
            arm_submissions(down);
            seen = published_submissions(up);
            pair.meet();
            if (!rung && seen != round) ++missed;
            disarm_submissions(down);
            pair.meet();
        }
    });
    std::thread client([&] {
        stay_on(0);
        UpHead& up = *session.client_up.as<UpHead>();
        const DownHead& down = *session.client_down.as<DownHead>();
        for (uint64_t round = 1; round <= kRounds; ++round) {
            (void)down.need_wakeup.load(std::memory_order_relaxed);
            pair.meet();
            rung = publish_submissions(up, down, round);
            pair.meet();
            pair.meet();
        }
    });
    broker.join();
    client.join();
    EXPECT_EQ(missed, 0U);
}

TEST(Doorbell, SaysRingOnlyToAnArmedBroker) {
    Session session;
    UpHead& up = *session.broker_up.as<UpHead>();
    DownHead& down = *session.broker_down.as<DownHead>();
    EXPECT_FALSE(publish_submissions(up, down, 1));
    arm_submissions(down);
    EXPECT_TRUE(publish_submissions(up, down, 2));
    EXPECT_EQ(published_submissions(up), 2U);
    disarm_submissions(down);
    EXPECT_FALSE(publish_submissions(up, down, 3));
}

TEST(Doorbell, TellsTheBrokerHowTheClientSleeps) {
    Session session;
    UpHead& up = *session.broker_up.as<UpHead>();
    DownHead& down = *session.broker_down.as<DownHead>();
    EXPECT_EQ(publish_completions(down, up, 1), ClientSleep::kAwake);
    (void)arm_completions(up, down, ClientSleep::kPoll);
    EXPECT_EQ(publish_completions(down, up, 2), ClientSleep::kPoll);
    disarm_completions(up);
    EXPECT_EQ(publish_completions(down, up, 3), ClientSleep::kAwake);
    EXPECT_EQ(published_completions(down).tail, 3U);
}

TEST(Doorbell, DoesNotSleepWhenItWasWokenBeforeItSlept) {
    Session session;
    UpHead& up = *session.client_up.as<UpHead>();
    const DownHead& down = *session.client_down.as<DownHead>();
    const uint32_t seen = arm_completions(up, down, ClientSleep::kFutex);
    wake_client(*session.broker_down.as<DownHead>());
    EXPECT_EQ(sleep_on_completions(down, seen, kLongNs), FutexWait::kChanged);
}

TEST(Doorbell, ShowsAnEventWordOnceItsCountIsSeen) {
    Session session;
    DownHead& down = *session.broker_down.as<DownHead>();
    auto* words = session.broker_down.as<std::atomic<uint64_t>>(plan_down(kSizes).event);
    store_event(words, 3, 0x0000000100000002ULL);
    count_event(down);
    EXPECT_EQ(published_completions(*session.client_down.as<DownHead>()).events, 1U);
    EXPECT_EQ(session.client_down.as<std::atomic<uint64_t>>(plan_down(kSizes).event)[3].load(),
              0x0000000100000002ULL);
}

TEST(Cpu, IsOneThatTheThreadMayRunOn) {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    const uint32_t cpu = current_cpu();
    ASSERT_NE(cpu, kNoCpu);
    EXPECT_TRUE(CPU_ISSET(cpu, &allowed));
}

}  // namespace
}  // namespace dibs::shm
