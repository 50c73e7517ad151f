// tests/clientlib/preemption_test.cpp -- a lease that is taken for a better claim, and a claim that
// waits again, as a program reads of them.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>

#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

namespace LeaseEvent = shm::LeaseEvent;

// The lease with this generation, then the next one for the same claim.
constexpr uint64_t lease_id(uint32_t generation) {
    return uint64_t{generation} << 32 | 5;
}

// Of another row, whose generation is that of the first lease.
constexpr uint64_t lease_of_same_generation() {
    return uint64_t{1} << 32 | 6;
}

struct Preemption : testing::Test {
    Preemption()
        : broker([this](FakeSession& session, const Submission& entry) {
              if (entry.op == Op::kAdopt) return adopted(session, entry);
              if (entry.op != Op::kClaim) return session.result(entry, result);
              claimed = entry;
              room = session.write_room({{"device=3", ""}});
              session.grant(entry, lease_id(1), 7, 0, room);
          }),
          client(broker) {}

    dibs_completion claim(bool requeue) {
        dibs_claim_options options = {};
        options.size = sizeof options;
        options.timeout_ns = DIBS_FOREVER;
        options.preempt = DIBS_PREEMPT_GRACE;
        options.preempt_grace_ns = DIBS_SECOND;
        options.requeue = requeue ? 1 : 0;
        dibs_completion end = {};
        EXPECT_EQ(dibs_claim(client, 0, &options, &end), DIBS_OK);
        return end;
    }
    void adopted(FakeSession& session, const Submission& entry) {
        claimed = entry;
        room = session.write_room({{"device=3", ""}});
        shm::Completion completion;
        completion.kind = shm::CompletionKind::kResult;
        completion.user_data = entry.user_data;
        completion.tag = entry.tag;
        completion.units = 1;
        completion.id = entry.id;
        completion.fence = entry.fence;
        completion.claim = 7;
        completion.data = room;
        session.complete(completion);
    }
    void tell(uint8_t event, uint32_t generation, uint32_t left_ms = 0) {
        broker.call([&](FakeSession& session) {
            auto* head = reinterpret_cast<shm::GrantHead*>(
                session.down_bytes() + shm::plan_down(session.sizes).payload + room);
            head->left_ms = left_ms;
            session.event(claimed.tag, shm::event_word(event, Reason::kRevoked, generation));
        });
    }
    void grant_again(uint64_t lease = lease_id(2)) {
        broker.call([&](FakeSession& session) {
            session.event(claimed.tag, 0);
            session.grant(claimed, lease, 9, 0, room, 7);
        });
    }
    dibs_completion reap() {
        dibs_completion out = {};
        EXPECT_EQ(dibs_reap(client, &out, 1, 10 * DIBS_SECOND), 1);
        return out;
    }

    Submission claimed;  // these before the thread that uses them
    uint32_t room = 0;
    std::atomic<Reason> result{Reason::kOk};
    FakeBroker broker;
    Client client;
};

TEST_F(Preemption, IsAnEventWithTheTimeLeft) {
    const dibs_completion held = claim(false);
    tell(LeaseEvent::kRevoking, 1, 60'000);
    const dibs_completion told = reap();
    EXPECT_EQ(told.kind, DIBS_LEASE_REVOKING);
    EXPECT_EQ(told.code, DIBS_EREVOKED);
    EXPECT_EQ(told.lease.id, held.lease.id);
    EXPECT_GT(told.interval_ns, 0);
    EXPECT_LE(told.interval_ns, 60 * DIBS_SECOND);
    int code = 0;
    EXPECT_EQ(dibs_lease_state(client, &held.lease, &code), DIBS_IN_GRACE);
    EXPECT_EQ(code, DIBS_EREVOKED);
    int64_t left = 0;
    EXPECT_EQ(dibs_lease_remaining(client, &held.lease, &left), DIBS_OK);
    EXPECT_LE(left, 60 * DIBS_SECOND);
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_FOREVER), DIBS_OK);
}

TEST_F(Preemption, AKeepaliveLeavesItWhatItIs) {
    const dibs_completion held = claim(false);
    tell(LeaseEvent::kRevoking, 1, 60'000);
    (void)reap();
    int64_t granted = -1;
    EXPECT_EQ(dibs_keepalive(client, &held.lease, DIBS_SECOND, DIBS_FOREVER, &granted), DIBS_OK);
    int code = 0;
    EXPECT_EQ(dibs_lease_state(client, &held.lease, &code), DIBS_IN_GRACE);
    EXPECT_EQ(code, DIBS_EREVOKED);
}

TEST_F(Preemption, AClaimThatWaitsAgainHasAnotherEnd) {
    const dibs_completion first = claim(true);
    tell(LeaseEvent::kRequeued, 1);
    const dibs_completion told = reap();
    EXPECT_EQ(told.kind, DIBS_LEASE_REQUEUED);
    EXPECT_EQ(told.code, DIBS_EREVOKED);
    EXPECT_EQ(told.lease.id, first.lease.id);
    EXPECT_EQ(told.lease.fence, 7U);
    int code = 0;
    EXPECT_EQ(dibs_lease_state(client, &first.lease, &code), DIBS_ENDED);
    EXPECT_EQ(code, DIBS_EREVOKED);
    grant_again();
    const dibs_completion second = reap();
    EXPECT_EQ(second.kind, DIBS_CLAIM_ENDED);
    EXPECT_EQ(second.outcome, DIBS_GRANTED);
    EXPECT_EQ(second.lease.id, lease_id(2));
    EXPECT_EQ(second.lease.fence, 9U);
    EXPECT_EQ(dibs_lease_state(client, &second.lease, nullptr), DIBS_LIVE);
    EXPECT_EQ(dibs_release(client, &second.lease, DIBS_FOREVER), DIBS_OK);
}

TEST_F(Preemption, AClaimThatWaitsAgainHoldsNothingForWhoeverAsksFirst) {
    const dibs_completion first = claim(true);
    tell(LeaseEvent::kRequeued, 1);
    int code = 0;
    EXPECT_EQ(dibs_lease_state(client, &first.lease, &code), DIBS_ENDED);
    EXPECT_EQ(code, DIBS_EREVOKED);
    EXPECT_EQ(reap().kind, DIBS_LEASE_REQUEUED);
    EXPECT_EQ(dibs_release(client, &first.lease, DIBS_NOWAIT), DIBS_ALREADY_ENDED);
}

// ---- the next grant of its claim, and what comes of that, while nobody has reaped

TEST_F(Preemption, ATakenLeaseIsNotLiveThoughItsWordIsTheNextOnes) {
    const dibs_completion first = claim(true);
    tell(LeaseEvent::kRequeued, 1);
    grant_again();  // the word says nothing any more, the unread grant does
    EXPECT_EQ(dibs_lease_state(client, &first.lease, nullptr), DIBS_ENDED);
    EXPECT_EQ(dibs_keepalive(client, &first.lease, 0, DIBS_NOWAIT, nullptr), DIBS_ALREADY_ENDED);
    EXPECT_EQ(reap().kind, DIBS_LEASE_REQUEUED);
    const dibs_completion second = reap();
    EXPECT_EQ(second.outcome, DIBS_GRANTED);
    EXPECT_EQ(second.lease.id, lease_id(2));
    EXPECT_EQ(dibs_lease_state(client, &second.lease, nullptr), DIBS_LIVE);
}

TEST_F(Preemption, TheNextLeasesEndIsNotTakenForTheFirstOnes) {
    const dibs_completion first = claim(true);
    tell(LeaseEvent::kRequeued, 1);
    grant_again(lease_of_same_generation());
    tell(LeaseEvent::kEnded, 1);
    EXPECT_EQ(dibs_lease_state(client, &first.lease, nullptr), DIBS_ENDED);
    EXPECT_EQ(reap().kind, DIBS_LEASE_REQUEUED);
    const dibs_completion second = reap();
    EXPECT_EQ(second.outcome, DIBS_GRANTED);
    EXPECT_EQ(second.lease.id, lease_of_same_generation());
    EXPECT_EQ(dibs_lease_state(client, &second.lease, nullptr), DIBS_ENDED);
    const dibs_completion end = reap();
    EXPECT_EQ(end.kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(end.lease.id, lease_of_same_generation());
    dibs_completion none = {};
    EXPECT_EQ(dibs_reap(client, &none, 1, DIBS_NOWAIT), 0);  // and the session is there
}

TEST_F(Preemption, WhatATakenLeaseHeldIsNotReadFromTheNextOnes) {
    const dibs_completion first = claim(true);
    dibs_slot slot = {};
    EXPECT_EQ(dibs_lease_slot(client, &first.lease, 0, &slot), DIBS_OK);
    tell(LeaseEvent::kRequeued, 1);
    grant_again(lease_of_same_generation());
    const char* device = nullptr;
    EXPECT_EQ(dibs_lease_attribute(client, &first.lease, 0, "device", &device), DIBS_ALREADY_ENDED);
    EXPECT_EQ(dibs_lease_slot(client, &first.lease, 0, &slot), DIBS_ALREADY_ENDED);
    EXPECT_EQ(reap().kind, DIBS_LEASE_REQUEUED);
    const dibs_completion second = reap();
    EXPECT_EQ(dibs_lease_slot(client, &second.lease, 0, &slot), DIBS_OK);
}

TEST_F(Preemption, GivingBackATakenLeaseGivesBackTheNextOneToo) {
    const dibs_completion first = claim(true);
    tell(LeaseEvent::kRequeued, 1);
    grant_again();
    EXPECT_EQ(dibs_release(client, &first.lease, DIBS_NOWAIT), DIBS_ALREADY_ENDED);
    broker.wait_for(2);
    const Submission release = broker.seen().back();
    EXPECT_EQ(release.op, Op::kRelease);
    EXPECT_EQ(release.id, lease_id(2));
    dibs_completion out = {};
    EXPECT_EQ(dibs_reap(client, &out, 1, DIBS_NOWAIT), 0);
}

// What a look makes owed is said before anybody sleeps on the session's descriptor.
TEST_F(Preemption, ALookLeavesNothingOwedWhenTheLoopSleeps) {
    const dibs_completion held = claim(false);
    broker.hold();
    dibs_lease late = {};
    EXPECT_EQ(dibs_adopt(client, lease_id(9), 3, DIBS_MILLISECOND, &late), DIBS_ETIMEDOUT);
    broker.go_on();
    broker.wait_for(2);  // and its answer is in the ring
    EXPECT_EQ(dibs_lease_state(client, &held.lease, nullptr), DIBS_LIVE);
    EXPECT_EQ(dibs_arm(client), DIBS_OK);
    broker.wait_for(3);
    const Submission release = broker.seen().at(2);
    EXPECT_EQ(release.op, Op::kRelease);
    EXPECT_EQ(release.id, lease_id(9));
}

// There is room for nothing more, but nothing else can be of this lease's tag.
TEST_F(Preemption, AnEndIsSeenThoughNobodyReaps) {
    dibs_connect_options sizes = {};
    sizes.submission_entries = 8;
    sizes.completion_entries = 16;
    const Client small(broker, sizes);
    dibs_completion held = {};
    ASSERT_EQ(dibs_claim(small, 0, nullptr, &held), DIBS_OK);
    broker.wait_for(1);
    const uint16_t tag = broker.seen().at(0).tag;
    dibs_op more = operation(DIBS_OP_CLAIM, 0);
    size_t asked = 1;
    while (dibs_submit(small, &more, 1) == 1)
        broker.wait_for(++asked);
    broker.call([&](FakeSession& session) {
        session.event(tag, shm::event_word(LeaseEvent::kEnded, Reason::kRevoked, 1));
        Submission nobodys;
        nobodys.user_data = ~uint64_t{0};
        session.result(nobodys);
    });
    int code = 0;
    EXPECT_EQ(dibs_lease_state(small, &held.lease, &code), DIBS_ENDED);
    EXPECT_EQ(code, DIBS_EREVOKED);
}

// The word that said so has been stored over before anybody looked.
TEST_F(Preemption, TheEndOfTheFirstLeaseIsToldBeforeTheSecondGrant) {
    const dibs_completion first = claim(true);
    grant_again();
    const dibs_completion told = reap();
    EXPECT_EQ(told.kind, DIBS_LEASE_REQUEUED);
    EXPECT_EQ(told.lease.id, first.lease.id);
    const dibs_completion second = reap();
    EXPECT_EQ(second.outcome, DIBS_GRANTED);
    EXPECT_EQ(second.lease.id, lease_id(2));
}

TEST_F(Preemption, AReleaseNamesTheClaimThatItGivesUp) {
    const dibs_completion held = claim(true);
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_FOREVER), DIBS_OK);
    const Submission release = broker.seen().at(1);
    EXPECT_EQ(release.op, Op::kRelease);
    EXPECT_EQ(release.tag, claimed.tag);
    EXPECT_EQ(shm::key_word(release), held.claim);
    // Granted again before the broker read that: nobody waits for it, and the session lives.
    grant_again();
    dibs_completion out = {};
    EXPECT_EQ(dibs_reap(client, &out, 1, DIBS_NOWAIT), 0);
    EXPECT_EQ(dibs_end_code(client), 0);
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
}

// The ring is full: making room for the release of a batch takes in the second grant. A call of its
// own takes that in first, and releases what there is now.
TEST_F(Preemption, AReleaseGivesUpWhatTurnsUpWhileItIsSubmitted) {
    for (const bool in_batch : {false, true}) {
        SCOPED_TRACE(in_batch);
        dibs_connect_options sizes = {};
        sizes.submission_entries = 8;
        sizes.completion_entries = 16;
        const Client small(broker, sizes);
        dibs_claim_options options = {};
        options.size = sizeof options;
        options.timeout_ns = DIBS_FOREVER;
        options.requeue = 1;
        dibs_completion held = {};
        ASSERT_EQ(dibs_claim(small, 0, &options, &held), DIBS_OK);
        dibs_op quiet = operation(DIBS_OP_READY, 0);
        quiet.flags = DIBS_QUIET;
        for (int line = 1; line < 7; ++line)
            ASSERT_EQ(dibs_submit(small, &quiet, 1), 1);
        broker.wait_for(7);
        grant_again();
        if (in_batch) {
            dibs_op release = operation(DIBS_OP_RELEASE, 0);
            release.flags = DIBS_QUIET;
            release.lease = &held.lease;
            EXPECT_EQ(dibs_submit(small, &release, 1), 1);
        } else {
            EXPECT_EQ(dibs_release(small, &held.lease, DIBS_NOWAIT), DIBS_ALREADY_ENDED);
        }
        broker.wait_for(8);
        const Submission release = broker.seen().at(7);
        EXPECT_EQ(release.op, Op::kRelease);
        EXPECT_EQ(release.id, in_batch ? held.lease.id : lease_id(2));
        EXPECT_EQ(shm::key_word(release), held.claim);
        dibs_completion out = {};
        EXPECT_EQ(dibs_reap(small, &out, 1, DIBS_NOWAIT), 0);
        EXPECT_EQ(dibs_end_code(small), 0);
    }
}

// Nobody has been told yet that it waited again and was granted again: it is all given up.
TEST_F(Preemption, AReleaseGivesUpWhatHasBeenTakenInAndNotTold) {
    const dibs_completion held = claim(true);
    grant_again();
    EXPECT_EQ(dibs_dispatch(client), 2);
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_NOWAIT), DIBS_ALREADY_ENDED);
    broker.wait_for(2);
    const Submission release = broker.seen().at(1);
    EXPECT_EQ(release.op, Op::kRelease);
    EXPECT_EQ(release.id, lease_id(2));
    EXPECT_EQ(release.fence, 9U);
    dibs_completion out = {};
    EXPECT_EQ(dibs_reap(client, &out, 1, DIBS_NOWAIT), 0);
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
}

// Who has been told of the second grant keeps it, whatever he says of the first.
TEST_F(Preemption, AReleaseOfTheTakenLeaseLeavesTheNextOne) {
    const dibs_completion held = claim(true);
    grant_again();
    (void)reap();
    const dibs_completion again = reap();
    ASSERT_EQ(again.outcome, DIBS_GRANTED);
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_FOREVER), DIBS_OK);  // as the broker judges
    EXPECT_EQ(dibs_lease_state(client, &again.lease, nullptr), DIBS_LIVE);
    EXPECT_EQ(dibs_release(client, &again.lease, DIBS_FOREVER), DIBS_OK);
}

// Its claim may wait again; what that comes to has the name of the adoption.
TEST_F(Preemption, OfAnAdoptedLeaseIsToldToWhoHasAdoptedIt) {
    dibs_lease lease = {};
    ASSERT_EQ(dibs_adopt(client, lease_id(1), 7, DIBS_FOREVER, &lease), DIBS_OK);
    tell(LeaseEvent::kRequeued, 1);
    const dibs_completion told = reap();
    EXPECT_EQ(told.kind, DIBS_LEASE_REQUEUED);
    EXPECT_EQ(told.lease.id, lease.id);
    grant_again();
    const dibs_completion again = reap();
    EXPECT_EQ(again.kind, DIBS_CLAIM_ENDED);
    EXPECT_EQ(again.outcome, DIBS_GRANTED);
    EXPECT_EQ(again.lease.id, lease_id(2));
    EXPECT_EQ(dibs_end_code(client), 0);
    EXPECT_EQ(dibs_release(client, &again.lease, DIBS_FOREVER), DIBS_OK);
}

// Adopted, taken and granted again before its caller, who did not wait, has looked: all of it goes
// back, and nothing is told.
TEST_F(Preemption, OfALeaseWhoseAdoptionWasGivenUpIsTheCallersNoMore) {
    broker.hold();
    dibs_lease late = {};
    EXPECT_EQ(dibs_adopt(client, lease_id(1), 7, DIBS_MILLISECOND, &late), DIBS_ETIMEDOUT);
    broker.go_on();
    broker.wait_for(1);
    tell(LeaseEvent::kRequeued, 1);
    grant_again();
    dibs_completion out = {};
    EXPECT_EQ(dibs_reap(client, &out, 1, DIBS_NOWAIT), 0);
    broker.wait_for(2);
    const Submission release = broker.seen().back();
    EXPECT_EQ(release.op, Op::kRelease);
    EXPECT_EQ(release.id, lease_id(2));
    EXPECT_EQ(claim(false).outcome, DIBS_GRANTED);
    EXPECT_EQ(dibs_end_code(client), 0);
}

// Another session has adopted it, and this one does not know yet.
TEST_F(Preemption, ALeaseThatAnotherHasAdoptedHasEnded) {
    const dibs_completion held = claim(false);
    result = Reason::kNotHolder;
    EXPECT_EQ(dibs_keepalive(client, &held.lease, 0, DIBS_FOREVER, nullptr), DIBS_ALREADY_ENDED);
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_FOREVER), DIBS_ALREADY_ENDED);
}

// Granted, taken and waiting again before its caller looked, who cancels it: the grant is told, and
// what the cancel ended belongs to nobody, whether the tag has been freed by then or not.
TEST_F(Preemption, ACancelThatMeetsATakenLeaseLeavesTheSessionWhole) {
    for (const bool frees : {false, true}) {
        SCOPED_TRACE(frees);
        dibs_claim_options options = {};
        options.size = sizeof options;
        options.timeout_ns = DIBS_FOREVER;
        options.requeue = 1;
        dibs_op op = {};
        op.size = sizeof op;
        op.kind = DIBS_OP_CLAIM;
        op.claim = &options;
        ASSERT_EQ(dibs_submit(client, &op, 1), 1);
        ASSERT_EQ(dibs_cancel(client, op.ticket), DIBS_OK);
        const dibs_completion granted = reap();
        EXPECT_EQ(granted.outcome, DIBS_GRANTED);
        if (frees) {
            EXPECT_EQ(dibs_release(client, &granted.lease, 0), DIBS_ALREADY_ENDED);
        }
        broker.call([&](FakeSession& session) {
            session.refuse(claimed, shm::Outcome::kCancelled, Reason::kOk);
        });
        dibs_completion out = {};
        EXPECT_EQ(dibs_reap(client, &out, 1, DIBS_NOWAIT), 0);
        EXPECT_EQ(dibs_end_code(client), 0);
    }
    EXPECT_EQ(claim(false).outcome, DIBS_GRANTED);
}

TEST_F(Preemption, AReleaseOfTheTakenLeaseCancelsItsClaim) {
    const dibs_completion held = claim(true);
    tell(LeaseEvent::kRequeued, 1);
    (void)reap();
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_NOWAIT), DIBS_ALREADY_ENDED);
    broker.wait_for(2);
    const Submission cancel = broker.seen().at(1);
    EXPECT_EQ(cancel.op, Op::kCancel);
    EXPECT_EQ(cancel.tag, claimed.tag);
    broker.call(
        [&](FakeSession& session) { session.refuse(claimed, Outcome::kCancelled, Reason::kOk); });
    dibs_completion out = {};
    EXPECT_EQ(dibs_reap(client, &out, 1, DIBS_NOWAIT), 0);
    EXPECT_EQ(dibs_end_code(client), 0);
}

TEST_F(Preemption, TermsAreRefusedEachWithItsCode) {
    const auto code_of = [&](auto change) {
        dibs_claim_options options = {};
        options.size = sizeof options;
        change(options);
        dibs_completion end = {};
        return dibs_claim(client, 0, &options, &end);
    };
    const std::string long_label(64, 'l');
    const char* too_long[] = {"good", long_label.c_str()};
    const char* empty[] = {""};
    EXPECT_EQ(code_of([&](auto& o) { o.labels = too_long, o.label_count = 2; }), DIBS_ELABELS);
    EXPECT_EQ(code_of([&](auto& o) { o.prefer = too_long, o.prefer_count = 2; }), DIBS_ELABELS);
    EXPECT_EQ(code_of([&](auto& o) { o.prefer = empty, o.prefer_count = 1; }), DIBS_ELABELS);
    EXPECT_EQ(code_of([&](auto& o) { o.prefer_count = 1; }), DIBS_ELABELS);
    EXPECT_EQ(code_of([&](auto& o) { o.prefer = empty, o.prefer_count = 33; }), DIBS_ELABELS);
    EXPECT_EQ(code_of([&](auto& o) { o.account = ""; }), DIBS_ENAME);
    EXPECT_EQ(code_of([&](auto& o) { o.account = long_label.c_str(); }), DIBS_ENAME);
    EXPECT_EQ(code_of([](auto& o) { o.preempt = 4; }), DIBS_EARGUMENT);
    EXPECT_EQ(code_of([](auto& o) { o.preempt = -1; }), DIBS_EARGUMENT);
    EXPECT_EQ(code_of([](auto& o) { o.priority = -1; }), DIBS_EARGUMENT);
    EXPECT_EQ(code_of([](auto& o) { o.preempt_grace_ns = -1; }), DIBS_ENEGATIVE);
    EXPECT_TRUE(broker.seen().empty());
}

// A program that was compiled before there were any.
TEST_F(Preemption, AnOptionsStructWithoutTermsIsTakenAsItIs) {
    dibs_claim_options options = {};
    options.size = offsetof(dibs_claim_options, prefer);
    options.preempt = 77;  // beyond its end
    options.timeout_ns = DIBS_FOREVER;
    dibs_completion end = {};
    EXPECT_EQ(dibs_claim(client, 0, &options, &end), DIBS_OK);
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
}

TEST_F(Preemption, AWorkerHearsOfItBeforeItsRevocation) {
    broker.call([](FakeSession& session) {
        shm::Completion notice;
        notice.kind = shm::CompletionKind::kNotice;
        notice.user_data = 70;
        notice.id = 12;
        notice.fence = 3;
        notice.value = 5'000'000'000;
        notice.claim = 44;
        notice.data = 2;
        session.complete(notice);
    });
    dibs_assignment told = {};
    ASSERT_EQ(dibs_next_assignment(client, 10 * DIBS_SECOND, &told), DIBS_OK);
    EXPECT_EQ(told.kind, DIBS_REVOKING);
    EXPECT_EQ(told.number, 2U);
    EXPECT_EQ(told.slot, 12U);
    EXPECT_EQ(told.round, 3U);
    EXPECT_EQ(told.worker_tag, 70U);
    EXPECT_EQ(told.claim, 44U);
    EXPECT_EQ(told.left_ns, 5 * DIBS_SECOND);
}

}  // namespace
}  // namespace dibs::test
