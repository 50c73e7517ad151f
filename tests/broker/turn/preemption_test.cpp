// tests/broker/turn/preemption_test.cpp -- a slot is taken for a better claim, or is to be
// provisioned: what holder and worker are told, and what becomes of a claim that waits again.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "broker/turn/answer.hpp"
#include "clientlib/wire/payload_encoder.hpp"
#include "shm/operation.hpp"
#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::CompletionKind;
using shm::Op;
using shm::Outcome;
using shm::Reason;

constexpr core::TimeNs kMillisecond = 1'000'000;

// A worker pool ordered by account: one worker with one slot; the second session's claims are
// better than the first one's.
struct PreemptionTest : testing::Test {
    void SetUp() override {
        pool = bench.pool(
            {.name = "box", .kind = shm::PoolKind::kWorker, .order = shm::PoolOrder::kAccount});
        ASSERT_NE(pool, shm::kNoRow);
        plain = &bench.open();
        rich = &bench.open();
        worker = &bench.open();
        bench.core.begin_turn(bench.now);
        std::string why;
        const std::array<int64_t, 1> balance{1'000'000};
        ASSERT_TRUE(bench.core.set_account({.name = "rich", .balance = balance}, &why)) << why;
        const core::SessionOpen open{.uid = 1000, .account = "rich"};
        rich_row = bench.core.open_session(open);
        bench.core.decide();
        bench.core.commit();
        bench.core.clear();
    }
    void announce(const std::vector<const char*>& labels) {
        client::AnnounceContent content;
        content.labels = labels.data();
        content.label_count = labels.size();
        shm::Submission entry;
        entry.op = Op::kAnnounce;
        entry.flags = shm::OpFlag::kThenReady;
        entry.payload_size = static_cast<uint32_t>(client::encode_announce(content, nullptr));
        client::encode_announce(content, reinterpret_cast<uint8_t*>(Bench::up_payload(*worker)));
        bench.push(*worker, entry);
        bench.turn();
        ASSERT_EQ(bench.next(*worker)->kind, CompletionKind::kSlot);
    }
    template <class Change>
    void claim_with(Session& session, uint16_t tag, const Change& change) {
        dibs_claim_options terms = {};
        change(terms);
        client::ClaimContent content;
        content.labels = terms.labels;
        content.label_count = terms.label_count;
        content.terms = &terms;
        shm::Submission entry = claim(tag, static_cast<uint16_t>(pool));
        entry.payload_size = static_cast<uint32_t>(client::encode_claim(content, nullptr));
        client::encode_claim(content, reinterpret_cast<uint8_t*>(Bench::up_payload(session)));
        bench.push(session, entry);
        bench.turn();
    }
    // The worker takes what it is assigned.
    shm::Completion confirm() {
        const auto assigned = bench.next(*worker);
        EXPECT_EQ(assigned->kind, CompletionKind::kAssign);
        bench.push(*worker, word(Op::kConfirm, assigned->id, assigned->fence, shm::OpFlag::kQuiet));
        bench.turn();
        return *assigned;
    }
    void say_ready(const shm::Completion& of) {
        bench.push(*worker, word(Op::kReady, of.id, of.fence, shm::OpFlag::kQuiet));
        bench.turn();
    }
    // A better claim, of a session that only the core knows.
    void claim_better() {
        bench.core.begin_turn(bench.now);
        bench.operations.begin_turn();
        bench.core.apply(core::Claim{.session = rich_row, .pool = pool});
        bench.core.decide();
        bench.answers.stage();
        bench.core.commit();
        bench.answers.store();
        bench.core.clear();
    }
    void end_better() {
        bench.core.begin_turn(bench.now);
        bench.operations.begin_turn();
        bench.core.session_died(rich_row);
        bench.core.decide();
        bench.answers.stage();
        bench.core.commit();
        bench.answers.store();
        bench.core.clear();
    }
    [[nodiscard]] uint8_t event(uint16_t tag) const {
        return shm::event_state(plain->events[tag].load());
    }
    [[nodiscard]] std::vector<std::string> wrongs() const { return bench.core.check_all(); }

    Bench bench;
    uint32_t pool = 0;
    uint32_t rich_row = 0;
    Session* plain = nullptr;
    Session* rich = nullptr;
    Session* worker = nullptr;
};

TEST_F(PreemptionTest, WithGraceTellsHolderAndWorkerHowLongIsLeft) {
    announce({});
    claim_with(*plain, 3, [](auto& o) {
        o.preempt = DIBS_PREEMPT_GRACE;
        o.preempt_grace_ns = 5 * DIBS_MILLISECOND;
    });
    const shm::Completion assigned = confirm();
    const auto granted = bench.next(*plain);
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    claim_better();
    EXPECT_EQ(plain->events[3].load(),
              shm::event_word(shm::LeaseEvent::kRevoking,
                              Reason::kRevoked,
                              static_cast<uint32_t>(granted->id >> 32)));
    const auto* head = reinterpret_cast<const shm::GrantHead*>(plain->payload + granted->data);
    EXPECT_EQ(head->left_ms, 5U);
    const auto notice = bench.next(*worker);
    ASSERT_EQ(notice->kind, CompletionKind::kNotice);
    EXPECT_EQ(notice->id, assigned.id);
    EXPECT_EQ(notice->fence, assigned.fence);
    EXPECT_EQ(notice->value, 5 * kMillisecond);
    EXPECT_EQ(notice->claim, granted->claim);
    EXPECT_EQ(notice->data, 0U);
    EXPECT_FALSE(bench.next(*worker));

    bench.now += 5 * kMillisecond;
    bench.turn();
    EXPECT_EQ(event(3), shm::LeaseEvent::kEnded);
    const auto revoked = bench.next(*worker);
    ASSERT_EQ(revoked->kind, CompletionKind::kRevoke);
    say_ready(*revoked);
    EXPECT_NE(bench.next(*worker)->claim, granted->claim);  // the better one has it
    EXPECT_EQ(wrongs(), std::vector<std::string>{});
}

// A broker that comes to it late takes nothing of what the pool promises.
TEST_F(PreemptionTest, AGraceBeginsWhenItIsTold) {
    const uint32_t graceful = bench.pool({.name = "seat", .slots = 1, .grace_ns = kMillisecond});
    shm::Submission entry = claim(3, static_cast<uint16_t>(graceful));
    entry.fence = kMillisecond;  // its interval
    bench.push(*plain, entry);
    bench.turn();
    const auto granted = bench.next(*plain);
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    ASSERT_EQ(granted->value, kMillisecond);
    bench.now += 5 * kMillisecond;
    bench.turn();
    EXPECT_EQ(event(3), shm::LeaseEvent::kGrace);
    const auto* head = reinterpret_cast<const shm::GrantHead*>(plain->payload + granted->data);
    EXPECT_EQ(head->left_ms, 1U);
    bench.now += kMillisecond;
    bench.turn();
    EXPECT_EQ(event(3), shm::LeaseEvent::kEnded);
}

TEST_F(PreemptionTest, NeverLeavesTheHolderAlone) {
    announce({});
    claim_with(*plain, 3, [](auto& o) { o.preempt = DIBS_PREEMPT_NEVER; });
    (void)confirm();
    claim_better();
    bench.now += 1000 * kMillisecond;
    bench.turn();
    EXPECT_EQ(event(3), shm::LeaseEvent::kNone);
    EXPECT_FALSE(bench.next(*worker));
}

TEST_F(PreemptionTest, AClaimThatWaitsAgainIsGrantedAgainUnderItsTag) {
    announce({});
    claim_with(*plain, 3, [](auto& o) {
        o.requeue = 1;
        o.preempt = DIBS_PREEMPT_AT_ONCE;
    });
    (void)confirm();
    const auto first = bench.next(*plain);
    claim_better();
    EXPECT_EQ(event(3), shm::LeaseEvent::kRequeued);
    const auto revoked = bench.next(*worker);
    ASSERT_EQ(revoked->kind, CompletionKind::kRevoke);
    end_better();
    say_ready(*revoked);
    (void)confirm();
    const auto second = bench.next(*plain);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->outcome, Outcome::kGranted);
    EXPECT_EQ(second->user_data, first->user_data);
    EXPECT_EQ(second->claim, first->claim);
    EXPECT_EQ(second->tag, 3U);
    EXPECT_EQ(second->data, first->data);
    EXPECT_GT(second->fence, first->fence);
    EXPECT_EQ(event(3), shm::LeaseEvent::kNone);
    EXPECT_EQ(wrongs(), std::vector<std::string>{});
}

// Its library has not seen the event yet and gives the lease back: it wants the claim no more.
TEST_F(PreemptionTest, AReleaseThatCrossesItEndsTheClaimThatWaitsAgain) {
    announce({});
    claim_with(*plain, 3, [](auto& o) {
        o.requeue = 1;
        o.preempt = DIBS_PREEMPT_AT_ONCE;
    });
    (void)confirm();
    const auto granted = bench.next(*plain);
    claim_better();
    shm::Submission release = word(Op::kRelease, granted->id, granted->fence);
    release.tag = 3;
    shm::set_key_word(release, granted->claim);
    bench.push(*plain, release);
    bench.turn();
    const auto told = bench.next(*plain);
    EXPECT_EQ(told->kind, CompletionKind::kResult);
    EXPECT_EQ(told->reason, Reason::kAlreadyEnded);
    EXPECT_FALSE(bench.next(*plain));
    EXPECT_EQ(bench.core.session(plain->row).claims, 0U);
    EXPECT_EQ(plain->tags[3].first, shm::kNoRow);
    bench.push(*plain, claim(3, static_cast<uint16_t>(pool)));  // the tag is free
    bench.turn();
    EXPECT_EQ(bench.core.session(plain->row).claims, 1U);
    EXPECT_EQ(wrongs(), std::vector<std::string>{});
}

TEST_F(PreemptionTest, AReleaseOfAnotherClaimsNumberEndsNothing) {
    announce({});
    claim_with(*plain, 3, [](auto& o) {
        o.requeue = 1;
        o.preempt = DIBS_PREEMPT_AT_ONCE;
    });
    (void)confirm();
    const auto granted = bench.next(*plain);
    claim_better();
    shm::Submission release = word(Op::kRelease, granted->id, granted->fence);
    release.tag = 3;
    shm::set_key_word(release, granted->claim + 1);
    bench.push(*plain, release);
    bench.turn();
    EXPECT_EQ(bench.core.session(plain->row).claims, 1U);
}

TEST_F(PreemptionTest, GrantAndAssignmentNameTheLabelsToProvision) {
    announce({"cuda", "model:a"});
    const char* labels[] = {"cuda"};
    const char* prefer[] = {"model:b", "model:a", "model:c"};
    claim_with(*plain, 3, [&](auto& o) {
        o.labels = labels, o.label_count = 1;
        o.prefer = prefer, o.prefer_count = 3;
    });
    const shm::Completion assigned = confirm();
    EXPECT_EQ(assigned.value >> 32U, 0b101U);  // the first and the last one
    EXPECT_EQ(static_cast<uint32_t>(assigned.value), 0U);
    const auto granted = bench.next(*plain);
    EXPECT_EQ(~granted->holder, 0b101U);
}

TEST_F(PreemptionTest, AGrantThatLacksNothingSaysSo) {
    announce({"cuda", "model:a"});
    const char* prefer[] = {"model:a"};
    claim_with(*plain, 3, [&](auto& o) { o.prefer = prefer, o.prefer_count = 1; });
    EXPECT_EQ(confirm().value >> 32U, 0U);
    EXPECT_EQ(bench.next(*plain)->holder, shm::kNoRow);
}

TEST_F(PreemptionTest, AClaimWithoutItsLabelsWaits) {
    announce({"cuda"});
    const char* labels[] = {"cud"};  // a label is its whole text
    claim_with(*plain, 3, [&](auto& o) { o.labels = labels, o.label_count = 1; });
    EXPECT_FALSE(bench.next(*worker));
    EXPECT_EQ(bench.core.pool(pool).waiting, 1U);
}

TEST_F(PreemptionTest, APriorityAboveThePolicysIsNotAllowed) {
    Allowance allowance;
    allowance.priority_max = 7;
    plain->allowance = &allowance;
    claim_with(*plain, 3, [](auto& o) { o.priority = 7; });
    EXPECT_FALSE(bench.next(*plain));
    claim_with(*plain, 4, [](auto& o) { o.priority = 8; });
    const auto refused = bench.next(*plain);
    EXPECT_EQ(refused->outcome, Outcome::kRejected);
    EXPECT_EQ(refused->reason, Reason::kNotAllowed);
}

// Taken off its worker and granted to another in one turn: the word of the lease that has ended
// must not be stored behind the grant of the next one.
TEST_F(PreemptionTest, AClaimThatIsTakenAndGrantedInOneTurnFindsNoWordOfTheLeaseBefore) {
    const auto administer = [&](const auto& commands) {
        bench.core.begin_turn(bench.now);
        bench.operations.begin_turn();
        commands();
        bench.core.decide();
        bench.answers.stage();
        bench.core.commit();
        bench.answers.store();
        bench.core.clear();
    };
    administer([&] { bench.core.apply(core::Report{.pool = pool, .worker = "w0"}); });
    claim_with(*plain, 3, [](auto&) {});
    const auto first = bench.next(*plain);
    ASSERT_EQ(first->outcome, Outcome::kGranted);
    administer([&] {
        bench.core.apply(core::Unassign{.pool = pool, .claim = first->claim, .worker = "w0"});
        bench.core.apply(core::Report{.pool = pool, .worker = "w1"});
    });
    const auto second = bench.next(*plain);
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(second->outcome, Outcome::kGranted);
    EXPECT_EQ(second->claim, first->claim);
    EXPECT_GT(second->fence, first->fence);
    EXPECT_EQ(plain->events[3].load(), 0U);
    EXPECT_EQ(wrongs(), std::vector<std::string>{});
}

}  // namespace
}  // namespace dibs::test
