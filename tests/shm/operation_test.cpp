// tests/shm/operation_test.cpp -- fields that mean different things in different entries.
// SPDX-License-Identifier: Apache-2.0
#include "shm/operation.hpp"

#include <gtest/gtest.h>

namespace dibs::shm {
namespace {

TEST(Operation, CarriesAWordInTheKey) {
    Submission entry;
    set_key_word(entry, 0xfedcba9876543210ULL);
    EXPECT_EQ(key_word(entry), 0xfedcba9876543210ULL);
    EXPECT_EQ(entry.key[8], 0);
}

TEST(Operation, NamesTheHolderInAClaimsEndAndInAResult) {
    for (const CompletionKind kind : {CompletionKind::kClaim, CompletionKind::kResult}) {
        Completion completion;
        completion.kind = kind;
        EXPECT_EQ(holder_of(completion).uid, kNoRow);
        set_holder(completion, {1000, 4711, 5'000'000'000, 12});
        EXPECT_EQ(holder_of(completion).uid, 1000U);
        EXPECT_EQ(holder_of(completion).pid, 4711U);
        EXPECT_EQ(holder_of(completion).age_ns, 5'000'000'000U);
        EXPECT_EQ(holder_of(completion).claim, 12U);
        EXPECT_EQ(kind == CompletionKind::kClaim ? completion.id : completion.claim, 12U);
    }
}

TEST(Operation, PacksALeaseEventIntoOneWord) {
    const uint64_t word = event_word(LeaseEvent::kEnded, Reason::kExpiredLease, 7);
    EXPECT_EQ(word, 0x0000000700001502ULL);
    EXPECT_EQ(event_state(word), LeaseEvent::kEnded);
    EXPECT_EQ(event_reason(word), Reason::kExpiredLease);
    EXPECT_EQ(event_generation(word), 7U);
}

}  // namespace
}  // namespace dibs::shm
