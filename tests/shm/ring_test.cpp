// tests/shm/ring_test.cpp -- rings: order, wrap-around, bulk, what counts as a violation, and two
// threads that stream through one.
// SPDX-License-Identifier: Apache-2.0
#include "shm/ring.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/shm/mapping.hpp"

namespace dibs::shm {
namespace {

Submission claim(uint64_t user_data) {
    Submission entry;
    entry.user_data = user_data;
    entry.op = Op::kClaim;
    entry.pool = 7;
    entry.units = 3;
    entry.tag = 11;
    entry.payload_offset = 4096;
    entry.payload_size = 100;
    entry.id = user_data * 3;
    entry.fence = ~user_data;
    for (uint8_t i = 0; i < 16; ++i)
        entry.key[i] = static_cast<uint8_t>(user_data + i);
    return entry;
}

struct Ring {
    std::vector<SubmissionEntry> lines = std::vector<SubmissionEntry>(8);
    SubmissionProducer producer{lines.data(), 8, 0};
    SubmissionConsumer consumer{lines.data(), 8, 0};
};

TEST(Ring, HasNothingAtFirst) {
    Ring ring;
    Submission entry;
    EXPECT_EQ(ring.consumer.pop(entry), Poll::kNothing);
    EXPECT_FALSE(ring.consumer.maybe());
    EXPECT_EQ(ring.producer.room(), 8U);
}

TEST(Ring, CarriesEveryFieldUnchanged) {
    Ring ring;
    ring.producer.push(claim(42));
    Submission entry;
    EXPECT_TRUE(ring.consumer.maybe());
    ASSERT_EQ(ring.consumer.pop(entry), Poll::kEntry);
    EXPECT_EQ(entry.sequence, 1U);
    EXPECT_EQ(entry.user_data, 42U);
    EXPECT_EQ(entry.op, Op::kClaim);
    EXPECT_EQ(entry.pool, 7);
    EXPECT_EQ(entry.units, 3);
    EXPECT_EQ(entry.tag, 11);
    EXPECT_EQ(entry.payload_offset, 4096U);
    EXPECT_EQ(entry.payload_size, 100U);
    EXPECT_EQ(entry.id, 126U);
    EXPECT_EQ(entry.fence, ~uint64_t{42});
    EXPECT_EQ(entry.key[15], 57);
}

TEST(Ring, PeekLeavesTheEntryWhereItIs) {
    Ring ring;
    ring.producer.push(claim(1));
    Submission entry;
    EXPECT_EQ(ring.consumer.peek(entry), Poll::kEntry);
    EXPECT_EQ(ring.consumer.peek(entry), Poll::kEntry);
    EXPECT_EQ(ring.consumer.head(), 0U);
}

TEST(Ring, IsFullAfterAsManyEntriesAsItHasLines) {
    Ring ring;
    std::array<Submission, 12> entries = {};
    for (uint64_t i = 0; i < 12; ++i)
        entries[i] = claim(i);
    EXPECT_EQ(ring.producer.push_bulk(entries.data(), 12), 8U);
    EXPECT_EQ(ring.producer.room(), 0U);
    std::array<Submission, 12> read = {};
    EXPECT_EQ(ring.consumer.pop_bulk(read.data(), 12), 8U);
    EXPECT_EQ(read[7].user_data, 7U);
    EXPECT_EQ(ring.producer.room(), 0U);  // read, but not yet released
    EXPECT_TRUE(ring.producer.release_to(5));
    EXPECT_EQ(ring.producer.room(), 5U);
}

TEST(Ring, GoesRoundManyTimes) {
    Ring ring;
    Submission entry;
    for (uint64_t i = 0; i < 100; ++i) {
        ASSERT_EQ(ring.consumer.peek(entry), Poll::kNothing);
        ASSERT_TRUE(ring.producer.release_to(ring.consumer.head()));
        ring.producer.push(claim(i));
        ASSERT_EQ(ring.consumer.pop(entry), Poll::kEntry);
        ASSERT_EQ(entry.user_data, i);
    }
    EXPECT_EQ(ring.consumer.head(), 100U);
}

TEST(Ring, GoesOnAtAnyIndex) {
    std::vector<CompletionEntry> lines(8);
    CompletionProducer first(lines.data(), 8, 0);
    CompletionConsumer consumer(lines.data(), 8, 0);
    Completion entry;
    for (uint64_t i = 0; i < 11; ++i) {
        ASSERT_TRUE(first.release_to(consumer.head()));
        first.push({});
        ASSERT_EQ(consumer.pop(entry), Poll::kEntry);
    }
    CompletionProducer second(lines.data(), 8, 11);
    Completion twelfth;
    twelfth.user_data = 12;
    second.push(twelfth);
    ASSERT_EQ(consumer.pop(entry), Poll::kEntry);
    EXPECT_EQ(entry.user_data, 12U);
}

TEST(Ring, StoringALineAgainChangesNothing) {
    Ring ring;
    ring.producer.push(claim(5));
    store_line(ring.lines.data(), 8, 0, claim(5));
    Submission entry;
    ASSERT_EQ(ring.consumer.pop(entry), Poll::kEntry);
    EXPECT_EQ(entry.user_data, 5U);
    EXPECT_EQ(ring.consumer.pop(entry), Poll::kNothing);
}

TEST(Ring, SequenceThatJumpsAheadIsAViolation) {
    Ring ring;
    Submission entry;
    ring.lines[0].sequence.store(2);
    EXPECT_EQ(ring.consumer.pop(entry), Poll::kViolation);
    ring.lines[0].sequence.store(9);  // one whole round ahead
    EXPECT_EQ(ring.consumer.pop(entry), Poll::kViolation);
    EXPECT_TRUE(ring.consumer.maybe());
    EXPECT_EQ(ring.consumer.head(), 0U);
}

TEST(Ring, SequenceThatGoesBackIsAViolation) {
    Ring ring;
    Submission entry;
    for (uint64_t i = 0; i < 8; ++i) {
        ring.producer.push(claim(i));
        ASSERT_EQ(ring.consumer.pop(entry), Poll::kEntry);
    }
    EXPECT_EQ(ring.consumer.peek(entry), Poll::kNothing);
    ring.lines[0].sequence.store(0);  // what a punched page reads as
    EXPECT_EQ(ring.consumer.peek(entry), Poll::kViolation);
}

TEST(Ring, ReleaseBeyondTheTailOrBehindTheRingIsRefused) {
    Ring ring;
    ring.producer.push(claim(0));
    EXPECT_FALSE(ring.producer.release_to(2));
    EXPECT_FALSE(ring.producer.release_to(~uint64_t{0}));
    for (uint64_t i = 1; i < 16; ++i) {
        ASSERT_TRUE(ring.producer.release_to(i));
        ring.producer.push(claim(i));
    }
    EXPECT_FALSE(ring.producer.release_to(7));  // 16 - 7 > 8
    EXPECT_TRUE(ring.producer.release_to(8));
}

// Two mappings of one memfd, as two processes have them; the ring of 8 lines wraps 25,000 times.
// Every entry's words are computed from its number, so a torn or lost one shows.
TEST(RingStress, StreamsInOrderAndUntorn) {
    constexpr uint64_t kEntries = 200'000;
    test::SharedMemory memory(8 * kLineSize + kLineSize);
    test::Mapping of_producer(memory);
    test::Mapping of_consumer(memory, PROT_READ | PROT_WRITE);
    auto* read = of_producer.as<std::atomic<uint64_t>>(8 * kLineSize);
    auto* read_by_consumer = of_consumer.as<std::atomic<uint64_t>>(8 * kLineSize);

    std::thread thread([&] {
        SubmissionProducer producer(of_producer.as<SubmissionEntry>(), 8, 0);
        for (uint64_t i = 0; i < kEntries;) {
            ASSERT_TRUE(producer.release_to(read->load(std::memory_order_acquire)));
            if (producer.room() == 0) {
                sched_yield();
                continue;
            }
            producer.push(claim(i++));
        }
    });
    SubmissionConsumer consumer(of_consumer.as<SubmissionEntry>(), 8, 0);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < kEntries;) {
        Submission entry;
        const Poll poll = consumer.pop(entry);
        if (poll == Poll::kNothing) {
            sched_yield();
            continue;
        }
        const Submission expected = claim(i++);
        if (poll != Poll::kEntry || entry.user_data != expected.user_data ||
            entry.id != expected.id || entry.fence != expected.fence ||
            entry.key[15] != expected.key[15] || entry.sequence != i) {
            ++wrong;
        }
        read_by_consumer->store(consumer.head(), std::memory_order_release);
    }
    thread.join();
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(consumer.head(), kEntries);
}

// This thread stays on the n-th of the CPUs that it may use, if there are so many.
void stay_on(int nth, const cpu_set_t& allowed) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &allowed) == 0 || nth-- != 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        (void)sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

// A producer that changes the line while it is looked at: what was checked is what is handed on.
// Both run at once, each on a CPU of its own.
TEST(RingStress, HandsOnTheSequenceThatItHasChecked) {
    std::vector<SubmissionEntry> lines(8);
    std::atomic<bool> over = false;
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    std::thread flipping([&] {
        stay_on(1, allowed);
        for (uint64_t word = 1; !over.load(std::memory_order_relaxed); word ^= 3)
            lines[0].sequence.store(word, std::memory_order_relaxed);
    });
    stay_on(0, allowed);
    const SubmissionConsumer consumer(lines.data(), 8, 0);
    Poll last = Poll::kNothing;
    uint64_t wrong = 0;
    // Either of the two may be without a CPU for a while: as long as nothing changes, nothing is
    // tried, and the other is given way to.
    uint32_t unchanged = 0;
    for (uint32_t changes = 0, yields = 0; changes < 200'000 && yields < 2'000;) {
        Submission entry;
        const Poll poll = consumer.peek(entry);
        if (poll != last) {
            ++changes;
            unchanged = 0;
        } else if (++unchanged == 100'000) {
            unchanged = 0;
            ++yields;
            sched_yield();
        }
        last = poll;
        wrong += poll == Poll::kEntry && entry.sequence != 1;
    }
    over = true;
    flipping.join();
    (void)sched_setaffinity(0, sizeof allowed, &allowed);
    EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace dibs::shm
