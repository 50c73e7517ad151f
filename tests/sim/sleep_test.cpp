// tests/sim/sleep_test.cpp -- what a wait is for comes at every single step on the way to its
// sleep: the library, with seams, never sleeps on it.
//
// The broker is the scripted one, and answers nothing by itself. One arrival is made at the n-th
// place that the waiting thread passes, for every n, and at last where the kernel would put it to
// sleep. A sleep is not slept: whether one would begin after the arrival is what is asked.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <functional>

#include "clientlib/clock.hpp"
#include "shm/layout.hpp"
#include "tests/clientlib/fixture.hpp"
#include "tests/sim/seam.hpp"

namespace dibs::test {
namespace {

struct Arrival {
    std::function<void()> come;
    std::function<void()> give_up;  // what ends a wait that would not end
    uint64_t place = 0;             // how many are passed before it comes
    uint64_t passed = 0;
    bool has_come = false;
    uint64_t slept = 0;  // times that a sleep has begun behind it

    void make() {
        if (has_come) return;
        has_come = true;
        come();
    }
    void pass() {
        if (!has_come && passed++ == place) make();
    }
};

thread_local Arrival* arrival = nullptr;  // of the thread that waits

void pass() {
    if (arrival != nullptr) arrival->pass();
}

}  // namespace
}  // namespace dibs::test

namespace dibs::seam {

void moment() {
    test::pass();
}

uint64_t ticks() {
    test::pass();
    return client::monotonic_ns();
}

// Never where the broker says that it is.
uint32_t cpu() {
    return 1;
}

}  // namespace dibs::seam

extern "C" {

long __real_syscall(long number, ...);

long __wrap_syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    if (number != SYS_futex) std::abort();
    auto* word = va_arg(list, std::atomic<uint32_t>*);
    const int operation = va_arg(list, int);
    const uint32_t value = va_arg(list, uint32_t);
    va_end(list);
    dibs::test::Arrival* here = dibs::test::arrival;
    if (operation != FUTEX_WAIT || here == nullptr) {
        return __real_syscall(number, word, operation, value, nullptr, nullptr, 0);
    }
    here->make();
    if (word->load() != value) {
        errno = EAGAIN;
        return -1;
    }
    if (++here->slept == 10) here->give_up();
    errno = ETIMEDOUT;
    return -1;
}
}

namespace dibs::test {
namespace {

constexpr uint64_t kLease = uint64_t{5} << 32 | 6;
constexpr uint64_t kFence = 9;

// Everything that one round has.
struct Round {
    FakeBroker broker{[](FakeSession&, const Submission&) {}};
    Client client;

    explicit Round(int32_t spin_us) : client(broker, spinning(spin_us)) {}
    static dibs_connect_options spinning(int32_t spin_us) {
        dibs_connect_options options = {};
        options.spin_us = spin_us;
        return options;
    }

    // The broker has read that many entries.
    void read(size_t entries) {
        broker.call([](FakeSession&) {});
        broker.wait_for(entries);
    }
    void submit_claim() {
        dibs_op op = operation(DIBS_OP_CLAIM, 3);
        ASSERT_EQ(dibs_submit(client, &op, 1), 1);
        read(1);
    }
    void grant() {
        broker.call(
            [](FakeSession& session) { session.grant(session.seen.front(), kLease, kFence); });
    }
    dibs_lease hold() {
        submit_claim();
        grant();
        dibs_completion end = {};
        EXPECT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
        return end.lease;
    }
    void tell(uint8_t event, Reason reason) {
        broker.call([=](FakeSession& session) {
            session.event(0, shm::event_word(event, reason, kLease >> 32));
        });
    }
    void end() {
        broker.call([](FakeSession& session) { session.end(Reason::kDraining); });
    }
};

// Plays `wait` while `come` happens at each place on its way.
template <typename Prepare, typename Come, typename Wait>
void at_every_place(Prepare prepare, Come come, Wait wait) {
    for (const int32_t spin_us : {-1, 1}) {
        uint64_t places = 0;
        for (bool at_the_end = false; !at_the_end; ++places) {
            Round round(spin_us);
            prepare(round);
            Arrival arrives;
            arrives.come = [&] { come(round); };
            arrives.give_up = [&] { round.end(); };
            arrives.place = places;
            arrival = &arrives;
            wait(round);
            arrival = nullptr;
            ASSERT_TRUE(arrives.has_come);
            EXPECT_EQ(arrives.slept, 0U) << "behind place " << places << ", spin_us " << spin_us;
            at_the_end = arrives.passed <= places;
            ASSERT_LT(places, 100'000U);
        }
        EXPECT_GE(places, 3U);  // around the store, and the end
    }
}

int reap(Round& round, dibs_completion& out) {
    return dibs_reap(round.client, &out, 1, DIBS_FOREVER);
}

TEST(Sleep, IsNotBegunBehindALeaseEvent) {
    for (const uint8_t event : {shm::LeaseEvent::kGrace,
                                shm::LeaseEvent::kEnded,
                                shm::LeaseEvent::kRevoking,
                                shm::LeaseEvent::kRequeued}) {
        at_every_place([](Round& round) { round.hold(); },
                       [&](Round& round) { round.tell(event, Reason::kRevoked); },
                       [](Round& round) {
                           dibs_completion out = {};
                           EXPECT_EQ(reap(round, out), 1);
                           EXPECT_EQ(out.lease.id, kLease);
                       });
    }
}

TEST(Sleep, IsNotBegunBehindAGrantAndTheEndOfItsLease) {
    at_every_place([](Round& round) { round.submit_claim(); },
                   [](Round& round) {
                       round.grant();
                       round.tell(shm::LeaseEvent::kEnded, Reason::kWorkerLost);
                   },
                   [](Round& round) {
                       dibs_completion out = {};
                       EXPECT_EQ(reap(round, out), 1);
                       EXPECT_EQ(out.kind, DIBS_CLAIM_ENDED);
                       EXPECT_EQ(reap(round, out), 1);
                       EXPECT_EQ(out.kind, DIBS_LEASE_ENDED);
                       EXPECT_EQ(out.code, DIBS_EWORKERLOST);
                   });
}

TEST(Sleep, IsNotBegunBehindTheEndOfTheSession) {
    const auto nothing = [](Round&) {};
    const auto ends = [](Round& round) { round.end(); };
    at_every_place(nothing, ends, [](Round& round) {
        dibs_completion out = {};
        EXPECT_EQ(reap(round, out), DIBS_ESESSION);
        EXPECT_EQ(dibs_end_code(round.client), DIBS_EDRAINING);
    });
    at_every_place(nothing, ends, [](Round& round) {
        EXPECT_EQ(round.client.claim().outcome, DIBS_BROKER_LOST);
    });
    at_every_place(nothing, ends, [](Round& round) {
        dibs_assignment assignment = {};
        EXPECT_EQ(dibs_next_assignment(round.client, DIBS_FOREVER, &assignment), DIBS_ESESSION);
    });
    at_every_place([](Round& round) { round.hold(); },
                   ends,
                   [](Round& round) {
                       const dibs_lease lease = {kLease, kFence, uint64_t{1} << 32, 0, 1};
                       EXPECT_EQ(dibs_release(round.client, &lease, DIBS_FOREVER), DIBS_ESESSION);
                   });
}

TEST(Sleep, IsNotBegunBehindAnAnswer) {
    const auto nothing = [](Round&) {};
    at_every_place(
        nothing,
        [](Round& round) {
            round.read(1);
            round.grant();
        },
        [](Round& round) { EXPECT_EQ(round.client.claim().outcome, DIBS_GRANTED); });
    at_every_place(
        [](Round& round) { round.hold(); },
        [](Round& round) {
            round.read(2);
            round.broker.call([](FakeSession& session) { session.result(session.seen.back()); });
        },
        [](Round& round) {
            const dibs_lease lease = {kLease, kFence, uint64_t{1} << 32, 0, 1};
            EXPECT_EQ(dibs_release(round.client, &lease, DIBS_FOREVER), DIBS_OK);
        });
    at_every_place(
        nothing,
        [](Round& round) {
            round.broker.call([](FakeSession& session) { session.revoke(1, 1, 1); });
        },
        [](Round& round) {
            dibs_assignment assignment = {};
            EXPECT_EQ(dibs_next_assignment(round.client, DIBS_FOREVER, &assignment), DIBS_OK);
        });
}

// An event loop sleeps in poll: it is not told to if anything has come.
TEST(Sleep, IsNotArmedBehindALeaseEvent) {
    at_every_place([](Round& round) { round.hold(); },
                   [](Round& round) { round.tell(shm::LeaseEvent::kEnded, Reason::kRevoked); },
                   [](Round& round) {
                       dibs_completion out = {};
                       EXPECT_EQ(dibs_dispatch(round.client), 0);
                       if (dibs_arm(round.client) == DIBS_OK) {
                           arrival->make();
                           pollfd watched = {dibs_fd(round.client), POLLIN, 0};
                           EXPECT_EQ(poll(&watched, 1, 0), 1);
                       }
                       EXPECT_EQ(dibs_dispatch(round.client), 1);
                       EXPECT_EQ(dibs_reap(round.client, &out, 1, DIBS_NOWAIT), 1);
                   });
}

}  // namespace
}  // namespace dibs::test
