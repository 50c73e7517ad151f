// tests/process/preemption_test.cpp -- a slot is taken for a better claim, between real processes:
// what holder and worker are told, who has it when, and who may die meanwhile.
//
// Whoever runs the tests administers its own brokers, so one session may claim for any account.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/wait.h>

#include <string>

#include "tests/process/child.hpp"
#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/kept_dibsd.hpp"

namespace dibs::test {
namespace {

constexpr int64_t kHour = 3600 * DIBS_SECOND;

const std::string kAccounts =
    "[[account]]\nname = \"urgent\"\nbalance = 1000\n"
    "[[account]]\nname = \"earner\"\nrate = 1\nbalance = -0.2\nfree_tasks_disabled = true\n";
const std::string kGpu =
    kAccounts + "[[pool]]\nname = \"gpu\"\nkind = \"counted\"\nslots = 1\norder = \"account\"\n";
const std::string kStrict = kGpu + "expiry = \"strict\"\n";
const std::string kBox = kAccounts +
                         "[[pool]]\nname = \"box\"\nkind = \"worker\"\norder = \"account\"\n"
                         "reservation_ttl = \"1h\"\n";

dibs_claim_options with(int32_t preempt, int64_t grace_ns = 0) {
    dibs_claim_options options = Attached::asking(DIBS_FOREVER);
    options.preempt = preempt;
    options.preempt_grace_ns = grace_ns;
    return options;
}

dibs_claim_options of(const char* account) {
    dibs_claim_options options = Attached::asking(DIBS_FOREVER);
    options.account = account;
    return options;
}

void submit(const Attached& client, const dibs_claim_options& options) {
    client.submit(&options, 5);
}

dibs_completion reap(const Attached& client) {
    dibs_completion out = {};
    EXPECT_EQ(dibs_reap(client, &out, 1, DIBS_FOREVER), 1);
    return out;
}

dibs_assignment next(const Attached& worker) {
    dibs_assignment assignment = {};
    EXPECT_EQ(dibs_next_assignment(worker, DIBS_FOREVER, &assignment), DIBS_OK);
    return assignment;
}

uint64_t announce(const Attached& worker, const char* const* labels = nullptr, size_t count = 0) {
    dibs_announce_options options = {};
    options.size = sizeof options;
    options.labels = labels;
    options.label_count = count;
    options.ready = 1;
    uint64_t slot = 0;
    EXPECT_EQ(dibs_announce(worker, worker.pool(), &options, DIBS_FOREVER, &slot), DIBS_OK);
    return slot;
}

dibs_assignment confirm_next(const Attached& worker) {
    const dibs_assignment assigned = next(worker);
    EXPECT_EQ(assigned.kind, DIBS_ASSIGN);
    EXPECT_EQ(dibs_confirm(worker, assigned.slot, assigned.round, nullptr, 0, DIBS_FOREVER),
              DIBS_OK);
    return assigned;
}

// What comes after the notice; a short grace may be over before anybody has looked.
dibs_completion end_of(const Attached& client) {
    dibs_completion event = reap(client);
    if (event.kind == DIBS_LEASE_REVOKING) event = reap(client);
    return event;
}

TEST(Preemption, WithGraceEndsWhenItsHolderReleases) {
    const Folder folder;
    const Dibsd dibsd(folder, kGpu);
    const Attached holder(dibsd.socket(), "gpu");
    const Attached urgent(dibsd.socket(), "gpu");
    const dibs_completion held = holder.claim(with(DIBS_PREEMPT_GRACE, kHour));
    submit(urgent, of("urgent"));
    const dibs_completion told = reap(holder);
    EXPECT_EQ(told.kind, DIBS_LEASE_REVOKING);
    EXPECT_EQ(told.code, DIBS_EREVOKED);
    EXPECT_GT(told.interval_ns, 0);
    EXPECT_LE(told.interval_ns, kHour);
    int code = 0;
    EXPECT_EQ(dibs_lease_state(holder, &held.lease, &code), DIBS_IN_GRACE);
    EXPECT_EQ(code, DIBS_EREVOKED);
    EXPECT_EQ(dibs_keepalive(holder, &held.lease, 0, DIBS_FOREVER, nullptr), DIBS_OK);
    EXPECT_EQ(urgent.counters().queued, 1U);
    EXPECT_EQ(dibs_release(holder, &held.lease, DIBS_FOREVER), DIBS_OK);
    const dibs_completion granted = reap(urgent);
    EXPECT_EQ(granted.outcome, DIBS_GRANTED);
    EXPECT_GT(granted.lease.fence, held.lease.fence);
}

TEST(Preemption, WithGraceEndsTheLeaseOfAHolderThatKeepsIt) {
    const Folder folder;
    const Dibsd dibsd(folder, kGpu);
    const Attached holder(dibsd.socket(), "gpu");
    const Attached urgent(dibsd.socket(), "gpu");
    const dibs_completion held = holder.claim(with(DIBS_PREEMPT_GRACE, DIBS_MILLISECOND));
    EXPECT_EQ(urgent.claim(of("urgent")).outcome, DIBS_GRANTED);
    const dibs_completion ended = end_of(holder);
    EXPECT_EQ(ended.kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(ended.code, DIBS_EREVOKED);
    EXPECT_EQ(dibs_release(holder, &held.lease, DIBS_FOREVER), DIBS_ALREADY_ENDED);
}

TEST(Preemption, AtOnceLeavesNoTime) {
    const Folder folder;
    const Dibsd dibsd(folder, kGpu);
    const Attached holder(dibsd.socket(), "gpu");
    const Attached urgent(dibsd.socket(), "gpu");
    (void)holder.claim(with(DIBS_PREEMPT_AT_ONCE));
    EXPECT_EQ(urgent.claim(of("urgent")).outcome, DIBS_GRANTED);
    const dibs_completion ended = reap(holder);
    EXPECT_EQ(ended.kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(ended.code, DIBS_EREVOKED);
}

TEST(Preemption, NeverLetsTheBetterClaimWait) {
    const Folder folder;
    const Dibsd dibsd(folder, kGpu);
    const Attached holder(dibsd.socket(), "gpu");
    const Attached urgent(dibsd.socket(), "gpu");
    const dibs_completion held = holder.claim(with(DIBS_PREEMPT_NEVER));
    submit(urgent, of("urgent"));
    urgent.await([](const auto& pool) { return pool.queued == 1; });
    EXPECT_EQ(dibs_lease_state(holder, &held.lease, nullptr), DIBS_LIVE);
    EXPECT_EQ(dibs_release(holder, &held.lease, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(reap(urgent).outcome, DIBS_GRANTED);
    dibs_completion none = {};
    EXPECT_EQ(dibs_reap(holder, &none, 1, DIBS_NOWAIT), 0);
}

TEST(Preemption, InAStrictPoolKillsAHolderThatKeepsIt) {
    const Folder folder;
    const Dibsd dibsd(folder, kStrict);
    const Attached urgent(dibsd.socket(), "gpu");
    const Child holder([&](const Child& child) {
        const Attached session(dibsd.socket(), "gpu");
        (void)session.claim(with(DIBS_PREEMPT_GRACE, DIBS_MILLISECOND));
        child.mark('h');
        for (;;)
            pause();
    });
    ASSERT_EQ(holder.marked(), 'h');
    EXPECT_EQ(urgent.claim(of("urgent")).outcome, DIBS_GRANTED);
    siginfo_t end = {};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(holder.pid()), &end, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(end.si_status, SIGKILL);
}

TEST(Preemption, AClaimThatAskedForItWaitsAgainInItsPlace) {
    const Folder folder;
    const Dibsd dibsd(folder, kGpu);
    const Attached holder(dibsd.socket(), "gpu");
    const Attached other(dibsd.socket(), "gpu");
    const Attached urgent(dibsd.socket(), "gpu");
    dibs_claim_options again = with(DIBS_PREEMPT_AT_ONCE);
    again.requeue = 1;
    submit(holder, again);
    const dibs_completion first = reap(holder);
    ASSERT_EQ(first.outcome, DIBS_GRANTED);
    submit(other, Attached::asking(DIBS_FOREVER));
    other.await([](const auto& pool) { return pool.queued == 1; });
    const dibs_completion better = urgent.claim(of("urgent"));
    ASSERT_EQ(better.outcome, DIBS_GRANTED);
    const dibs_completion taken = reap(holder);
    EXPECT_EQ(taken.kind, DIBS_LEASE_REQUEUED);
    EXPECT_EQ(taken.user_data, 5U);
    EXPECT_EQ(taken.lease.fence, first.lease.fence);
    EXPECT_EQ(dibs_release(urgent, &better.lease, DIBS_FOREVER), DIBS_OK);
    const dibs_completion second = reap(holder);
    EXPECT_EQ(second.outcome, DIBS_GRANTED);
    EXPECT_EQ(second.claim, first.claim);
    EXPECT_GT(second.lease.fence, better.lease.fence);
    EXPECT_EQ(dibs_release(holder, &second.lease, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(reap(other).outcome, DIBS_GRANTED);
}

TEST(Preemption, AReleaseOfWhatWasTakenCancelsTheClaimThatWaitsAgain) {
    const Folder folder;
    const Dibsd dibsd(folder, kGpu);
    const Attached holder(dibsd.socket(), "gpu");
    const Attached urgent(dibsd.socket(), "gpu");
    dibs_claim_options again = with(DIBS_PREEMPT_AT_ONCE);
    again.requeue = 1;
    const dibs_completion held = holder.claim(again);
    const dibs_completion better = urgent.claim(of("urgent"));
    ASSERT_EQ(better.outcome, DIBS_GRANTED);
    // Whether it has heard of it by now or not.
    EXPECT_EQ(dibs_release(holder, &held.lease, DIBS_FOREVER), DIBS_ALREADY_ENDED);
    urgent.await([](const auto& pool) { return pool.queued == 0; });
    EXPECT_EQ(dibs_release(urgent, &better.lease, DIBS_FOREVER), DIBS_OK);
    urgent.await([](const auto& pool) { return pool.idle == 1; });
    EXPECT_EQ(dibs_end_code(holder), 0);
    EXPECT_EQ(holder.claim().outcome, DIBS_GRANTED);
}

TEST(Preemption, OfAWorkersSlotIsToldToItsWorkerTwice) {
    const Folder folder;
    const Dibsd dibsd(folder, kBox);
    const Attached worker(dibsd.socket(), "box");
    const Attached holder(dibsd.socket(), "box");
    const Attached urgent(dibsd.socket(), "box");
    announce(worker);
    submit(holder, with(DIBS_PREEMPT_GRACE, kHour));
    const dibs_assignment first = confirm_next(worker);
    const dibs_completion held = reap(holder);
    submit(urgent, of("urgent"));
    const dibs_assignment notice = next(worker);
    EXPECT_EQ(notice.kind, DIBS_REVOKING);
    EXPECT_EQ(notice.slot, first.slot);
    EXPECT_EQ(notice.round, first.round);
    EXPECT_EQ(notice.claim, first.claim);
    EXPECT_GT(notice.left_ns, 0);
    EXPECT_LE(notice.left_ns, kHour);
    EXPECT_EQ(reap(holder).kind, DIBS_LEASE_REVOKING);
    EXPECT_EQ(dibs_release(holder, &held.lease, DIBS_FOREVER), DIBS_OK);
    const dibs_assignment revoked = next(worker);
    EXPECT_EQ(revoked.kind, DIBS_REVOKE);
    EXPECT_EQ(dibs_ready(worker, revoked.slot, revoked.round, DIBS_FOREVER), DIBS_OK);
    (void)confirm_next(worker);
    EXPECT_EQ(reap(urgent).outcome, DIBS_GRANTED);
}

TEST(Preemption, ADeadHolderGivesTheSlotToWhoTakesIt) {
    const Folder folder;
    const Dibsd dibsd(folder, kGpu);
    const Attached urgent(dibsd.socket(), "gpu");
    Child holder([&](const Child& child) {
        const Attached session(dibsd.socket(), "gpu");
        (void)session.claim(with(DIBS_PREEMPT_GRACE, kHour));
        child.mark('h');
        if (reap(session).kind == DIBS_LEASE_REVOKING) child.mark('r');
        for (;;)
            pause();
    });
    ASSERT_EQ(holder.marked(), 'h');
    submit(urgent, of("urgent"));
    ASSERT_EQ(holder.marked(), 'r');
    holder.kill();
    EXPECT_EQ(reap(urgent).outcome, DIBS_GRANTED);
}

TEST(Preemption, ADeadWorkerLetsWhoTookItsSlotWaitForAnother) {
    const Folder folder;
    const Dibsd dibsd(folder, kBox);
    const Attached holder(dibsd.socket(), "box");
    const Attached urgent(dibsd.socket(), "box");
    Child worker([&](const Child& child) {
        const Attached session(dibsd.socket(), "box");
        announce(session);
        child.mark('a');
        (void)confirm_next(session);
        if (next(session).kind == DIBS_REVOKING) child.mark('r');
        for (;;)
            pause();
    });
    ASSERT_EQ(worker.marked(), 'a');
    ASSERT_EQ(holder.claim(with(DIBS_PREEMPT_GRACE, kHour)).outcome, DIBS_GRANTED);
    submit(urgent, of("urgent"));
    ASSERT_EQ(worker.marked(), 'r');
    worker.kill();
    const dibs_completion lost = end_of(holder);
    EXPECT_EQ(lost.kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(lost.code, DIBS_EWORKERLOST);
    const Attached another(dibsd.socket(), "box");
    announce(another);
    (void)confirm_next(another);
    EXPECT_EQ(reap(urgent).outcome, DIBS_GRANTED);
}

TEST(Preemption, ADeadClaimantLeavesTheSlotToTheOneThatWaitsAgain) {
    const Folder folder;
    const Dibsd dibsd(folder, kGpu);
    const Attached holder(dibsd.socket(), "gpu");
    dibs_claim_options again = with(DIBS_PREEMPT_AT_ONCE);
    again.requeue = 1;
    submit(holder, again);
    ASSERT_EQ(reap(holder).outcome, DIBS_GRANTED);
    Child urgent([&](const Child& child) {
        const Attached session(dibsd.socket(), "gpu");
        (void)session.claim(of("urgent"));
        child.mark('g');
        for (;;)
            pause();
    });
    ASSERT_EQ(urgent.marked(), 'g');
    ASSERT_EQ(reap(holder).kind, DIBS_LEASE_REQUEUED);
    urgent.kill();
    EXPECT_EQ(reap(holder).outcome, DIBS_GRANTED);
}

TEST(Preemption, OutlivesItsBroker) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kGpu);
    const Attached holder(dibsd.socket(), "gpu");
    const Attached urgent(dibsd.socket(), "gpu");
    const dibs_completion held = holder.claim(with(DIBS_PREEMPT_GRACE, kHour));
    submit(urgent, of("urgent"));
    ASSERT_EQ(reap(holder).kind, DIBS_LEASE_REVOKING);
    dibsd.kill_broker();
    EXPECT_EQ(dibs_release(holder, &held.lease, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(reap(urgent).outcome, DIBS_GRANTED);
}

TEST(Preemption, EndsAtItsTimeUnderAnotherBroker) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kGpu);
    const Attached holder(dibsd.socket(), "gpu");
    const Attached urgent(dibsd.socket(), "gpu");
    dibs_claim_options again = with(DIBS_PREEMPT_GRACE, DIBS_SECOND);
    again.requeue = 1;
    submit(holder, again);
    ASSERT_EQ(reap(holder).outcome, DIBS_GRANTED);
    submit(urgent, of("urgent"));
    (void)reap(holder);
    dibsd.kill_broker();
    const dibs_completion better = reap(urgent);
    ASSERT_EQ(better.outcome, DIBS_GRANTED);
    EXPECT_EQ(dibs_release(urgent, &better.lease, DIBS_FOREVER), DIBS_OK);
    dibs_completion again_granted = reap(holder);
    if (again_granted.kind == DIBS_LEASE_REQUEUED) again_granted = reap(holder);
    EXPECT_EQ(again_granted.outcome, DIBS_GRANTED);
}

TEST(Labels, ThatASlotLacksAreNamedToItsWorker) {
    const Folder folder;
    const Dibsd dibsd(folder, kBox);
    const Attached worker(dibsd.socket(), "box");
    const Attached client(dibsd.socket(), "box");
    const char* has[] = {"cuda", "model:a"};
    announce(worker, has, 2);
    const char* must[] = {"cuda"};
    const char* should[] = {"model:a", "model:b"};
    dibs_claim_options want = Attached::asking(DIBS_FOREVER);
    want.labels = must;
    want.label_count = 1;
    want.prefer = should;
    want.prefer_count = 2;
    submit(client, want);
    const dibs_assignment assigned = confirm_next(worker);
    ASSERT_EQ(assigned.label_count, 1U);
    ASSERT_EQ(assigned.prefer_count, 2U);
    EXPECT_EQ(assigned.provision, 2U);
    const dibs_completion granted = reap(client);
    EXPECT_EQ(granted.outcome, DIBS_GRANTED);
    EXPECT_EQ(granted.provision, 2U);
}

TEST(Labels, ThatNoSlotHasLetAClaimWait) {
    const Folder folder;
    const Dibsd dibsd(folder, kBox);
    const Attached worker(dibsd.socket(), "box");
    const Attached client(dibsd.socket(), "box");
    announce(worker);
    const char* must[] = {"cuda"};
    dibs_claim_options want = Attached::asking(DIBS_FOREVER);
    want.labels = must;
    want.label_count = 1;
    submit(client, want);
    client.await([](const auto& pool) { return pool.queued == 1; });
    EXPECT_EQ(client.counters().idle, 1U);
    const Attached other(dibsd.socket(), "box");
    announce(other, must, 1);
    (void)confirm_next(other);
    EXPECT_EQ(reap(client).outcome, DIBS_GRANTED);
}

// Nothing else happens: what wakes the broker is the microsecond in which the account has
// something.
TEST(Balance, ThatBecomesPositiveWakesAnIdleBroker) {
    const Folder folder;
    const Dibsd dibsd(folder, kGpu);
    const Attached client(dibsd.socket(), "gpu");
    const uint64_t before = dibsd.voluntary_switches();
    EXPECT_EQ(client.claim(of("earner")).outcome, DIBS_GRANTED);
    EXPECT_LT(dibsd.voluntary_switches() - before, 100U);
}

}  // namespace
}  // namespace dibs::test
