// tests/process/client_explain_test.cpp -- why a claim waits, as a program asks, against a dibsd.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include "broker/core/match/explanation.hpp"
#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"

namespace dibs::test {
namespace {

constexpr const char* kExplained = R"(
[[pool]]
name = "gpu"
kind = "counted"
slots = 1
[[pool]]
name = "web"
kind = "worker"
)";

// Submits a claim that waits; its ticket.
uint64_t ticket_of(const Attached& client) {
    const dibs_claim_options want = Attached::asking(3600 * DIBS_SECOND);
    return client.submit(&want);
}

dibs_explanation blank() {
    dibs_explanation why = {};
    why.size = sizeof why;
    return why;
}

TEST(Explain, NamesPlaceReasonAndHolder) {
    const Folder folder;
    const Dibsd dibsd(folder, kExplained);
    const Attached holder(dibsd.socket(), "gpu");
    const dibs_completion granted = holder.claim();
    const Attached waiter(dibsd.socket(), "gpu");
    const uint64_t first = ticket_of(waiter);
    const uint64_t second = ticket_of(waiter);
    dibs_explanation why = blank();
    ASSERT_EQ(dibs_explain(waiter, first, &why), DIBS_OK);
    EXPECT_EQ(why.reason, DIBS_WAIT_HELD);
    EXPECT_EQ(why.position, 1U);
    EXPECT_EQ(why.units, 1U);
    EXPECT_EQ(why.slots, 1U);
    EXPECT_EQ(why.idle, 0U);
    EXPECT_EQ(why.holder.claim, granted.claim);
    EXPECT_EQ(why.holder.pid, static_cast<uint32_t>(getpid()));
    EXPECT_EQ(why.holder.uid, getuid());
    EXPECT_GT(why.left_ns, 3000 * DIBS_SECOND);
    EXPECT_EQ(why.claim, granted.claim + 1);
    ASSERT_EQ(dibs_explain(waiter, second, &why), DIBS_OK);
    EXPECT_EQ(why.reason, DIBS_WAIT_BEHIND);
    EXPECT_EQ(why.obstacle, DIBS_WAIT_HELD);
    EXPECT_EQ(why.position, 2U);
    EXPECT_EQ(why.waiting, 2U);
}

TEST(Explain, SaysThatNobodyHasAnnouncedASlot) {
    const Folder folder;
    const Dibsd dibsd(folder, kExplained);
    const Attached waiter(dibsd.socket(), "web");
    dibs_explanation why = blank();
    ASSERT_EQ(dibs_explain(waiter, ticket_of(waiter), &why), DIBS_OK);
    EXPECT_EQ(why.reason, DIBS_WAIT_NO_SLOTS);
    EXPECT_EQ(why.holder.claim, 0U);
    EXPECT_EQ(why.slots, 0U);
}

TEST(Explain, FindsNothingOfAClaimThatHasItsOutcome) {
    const Folder folder;
    const Dibsd dibsd(folder, kExplained);
    const Attached client(dibsd.socket(), "gpu");
    const uint64_t ticket = ticket_of(client);
    dibs_explanation why = blank();
    EXPECT_EQ(dibs_explain(client, ticket, &why), DIBS_ENOTFOUND);  // it was granted at once
    dibs_completion end = {};
    ASSERT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
    EXPECT_EQ(dibs_explain(client, ticket, &why), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_explain(client, 0x123456789ULL, &why), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_explain(client, ticket, nullptr), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_explain(nullptr, ticket, &why), DIBS_EARGUMENT);
    why.size = 8;
    EXPECT_EQ(dibs_explain(client, ticket, &why), DIBS_ESIZE);
}

// The numbers are the core's.
static_assert(DIBS_WAIT_BEHIND == static_cast<int>(core::WaitReason::kBehind));
static_assert(DIBS_WAIT_HELD == static_cast<int>(core::WaitReason::kHeld));
static_assert(DIBS_WAIT_UNITS == static_cast<int>(core::WaitReason::kUnits));
static_assert(DIBS_WAIT_CONFIRMING == static_cast<int>(core::WaitReason::kConfirming));
static_assert(DIBS_WAIT_UNCONFIRMED == static_cast<int>(core::WaitReason::kUnconfirmed));
static_assert(DIBS_WAIT_LEASES == static_cast<int>(core::WaitReason::kLeases));
static_assert(DIBS_WAIT_RECOVERING == static_cast<int>(core::WaitReason::kRecovering));
static_assert(DIBS_WAIT_NO_SLOTS == static_cast<int>(core::WaitReason::kNoSlots));
static_assert(DIBS_WAIT_NEXT_TURN == static_cast<int>(core::WaitReason::kNextTurn));
static_assert(DIBS_WAIT_PROMISED == static_cast<int>(core::WaitReason::kPromised));
static_assert(DIBS_WAIT_LEFT_OUT == static_cast<int>(core::WaitReason::kLeftOut));
static_assert(DIBS_WAIT_LABELS == static_cast<int>(core::WaitReason::kLabels));
static_assert(DIBS_WAIT_LABEL_LIMIT == static_cast<int>(core::WaitReason::kLabelLimit));
static_assert(DIBS_WAIT_HELD_BACK == static_cast<int>(core::WaitReason::kHeldBack));
static_assert(DIBS_WAIT_OVER_LIMIT == static_cast<int>(core::WaitReason::kOverLimit));
static_assert(DIBS_WAIT_ON_HOLD == static_cast<int>(core::WaitReason::kOnHold));
static_assert(DIBS_WAIT_LACKS == static_cast<int>(core::WaitReason::kLacks));
static_assert(DIBS_WAIT_SLOT_ROWS == static_cast<int>(core::WaitReason::kSlotRows));
static_assert(DIBS_WAIT_NO_PROVISIONER == static_cast<int>(core::WaitReason::kNoProvisioner));
static_assert(DIBS_WAIT_LIMIT == static_cast<int>(core::WaitReason::kLimit));
static_assert(DIBS_WAIT_OTHER_POOLS == static_cast<int>(core::WaitReason::kOtherPools));
static_assert(DIBS_WAIT_BEHIND_GANG == static_cast<int>(core::WaitReason::kBehindGang));
static_assert(DIBS_WAIT_DRAINED == static_cast<int>(core::WaitReason::kDrained));
static_assert(DIBS_CLASS_NONE == static_cast<int>(core::ClassReason::kNone));
static_assert(DIBS_CLASS_BALANCE == static_cast<int>(core::ClassReason::kBalance));
static_assert(DIBS_CLASS_NO_ACCOUNT == static_cast<int>(core::ClassReason::kNoAccount));
static_assert(DIBS_CLASS_NO_BALANCE == static_cast<int>(core::ClassReason::kNoBalance));
static_assert(DIBS_CLASS_FANOUT == static_cast<int>(core::ClassReason::kFanout));
static_assert(DIBS_FREE_CLASS == shm::kClasses);
static_assert(DIBS_PREEMPT_NONE == static_cast<int>(core::PreemptReason::kNone));
static_assert(DIBS_PREEMPT_FOR_FREE == static_cast<int>(core::PreemptReason::kForFree));
static_assert(DIBS_PREEMPT_DISABLED == static_cast<int>(core::PreemptReason::kDisabled));
static_assert(DIBS_PREEMPT_UNITS == static_cast<int>(core::PreemptReason::kUnits));
static_assert(DIBS_PREEMPT_BANNED == static_cast<int>(core::PreemptReason::kBanned));
static_assert(DIBS_PREEMPT_NO_CANDIDATE == static_cast<int>(core::PreemptReason::kNoCandidate));
static_assert(DIBS_PREEMPT_BALANCE == static_cast<int>(core::PreemptReason::kBalance));
static_assert(DIBS_PREEMPT_NEXT_TURN == static_cast<int>(core::PreemptReason::kNextTurn));

}  // namespace
}  // namespace dibs::test
