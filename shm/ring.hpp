// shm/ring.hpp -- single-producer single-consumer rings of 64-byte lines.
//
//   index   0     1     2    …   n-1     n → line 0 again
//         ┌─────┬─────┬─────┬─────┬─────┐
//         │seq 1│seq 2│seq 3│     │seq n│   the entry at index i lies in line i & (n-1) and
//         └─────┴─────┴─────┴─────┴─────┘   carries sequence i + 1; i never wraps
//
// Each line carries its entry's sequence. Entry and ready flag arrive in one cache line: a quarter
// faster than rings with shared indices. Cursors are private to their side; neither side reads its
// own index back from shared memory. The producer stores seven words (relaxed), then the sequence
// (release); it pairs with the consumer's acquire load of the sequence, after which the words are
// loaded (relaxed).
//
// A consumer accepts two values in a line: the sequence that it waits for, or the one that lay
// there before (nothing new). Everything else is a violation by the producer, including zeroes
// where there once was an entry.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shm/layout.hpp"
#include "shm/words.hpp"

namespace dibs::shm {

// Entries as their reader and writer hold them: SubmissionEntry and CompletionEntry, without the
// atomic. The sequence is the ring's business.
struct Submission {
    uint64_t sequence = 0;
    uint64_t user_data = 0;
    Op op = Op::kNop;
    uint8_t flags = 0;
    uint16_t pool = 0;
    uint16_t units = 0;
    uint16_t tag = 0;
    uint32_t payload_offset = 0;
    uint32_t payload_size = 0;
    uint64_t id = 0;
    uint64_t fence = 0;
    uint8_t key[16] = {};
};
static_assert(sizeof(Submission) == sizeof(SubmissionEntry));
static_assert(offsetof(Submission, payload_offset) == offsetof(SubmissionEntry, payload_offset));
static_assert(offsetof(Submission, key) == offsetof(SubmissionEntry, key));

struct Completion {
    uint64_t sequence = 0;
    uint64_t user_data = 0;
    CompletionKind kind = CompletionKind::kResult;
    Outcome outcome = Outcome::kNone;
    Reason reason = Reason::kOk;
    uint16_t units = 0;
    uint16_t tag = 0;
    uint64_t id = 0;
    uint64_t fence = 0;
    uint64_t value = 0;
    uint64_t claim = 0;
    uint32_t data = kNoRow;
    uint32_t holder = kNoRow;
};
static_assert(sizeof(Completion) == sizeof(CompletionEntry));
static_assert(offsetof(Completion, id) == offsetof(CompletionEntry, id));
static_assert(offsetof(Completion, holder) == offsetof(CompletionEntry, holder));

// The words of small fields, put together in a register: lines are copied by words, and a load of
// eight bytes that were stored in pieces waits until all earlier stores have left the core.
static_assert(std::endian::native == std::endian::little);
inline void set_operation(
    Submission& entry, Op op, uint8_t flags, uint16_t pool, uint16_t units, uint16_t tag) {
    static_assert(offsetof(Submission, op) == 16 && offsetof(Submission, tag) == 22);
    const uint64_t word = uint64_t{static_cast<uint8_t>(op)} | uint64_t{flags} << 8U |
                          uint64_t{pool} << 16U | uint64_t{units} << 32U | uint64_t{tag} << 48U;
    std::memcpy(reinterpret_cast<std::byte*>(&entry) + 16, &word, sizeof(word));
}
inline uint64_t grant_word(uint16_t units, uint16_t tag, Reason reason) {
    static_assert(offsetof(Completion, kind) == 16 && offsetof(Completion, tag) == 22);
    return uint64_t{static_cast<uint8_t>(CompletionKind::kClaim)} |
           uint64_t{static_cast<uint8_t>(Outcome::kGranted)} << 8U |
           uint64_t{static_cast<uint16_t>(reason)} << 16U | uint64_t{units} << 32U |
           uint64_t{tag} << 48U;
}
inline bool is_grant(const Completion& entry, uint16_t units, uint16_t tag) {
    uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(&entry) + 16, sizeof(word));
    return word == grant_word(units, tag, Reason::kOk) ||
           word == grant_word(units, tag, Reason::kMayPark);
}
inline void set_grant(
    Completion& entry, uint16_t units, uint16_t tag, Reason reason, uint32_t data) {
    static_assert(offsetof(Completion, data) == 56);
    const uint64_t word = grant_word(units, tag, reason);
    const uint64_t place = uint64_t{data} | uint64_t{kNoRow} << 32U;
    std::memcpy(reinterpret_cast<std::byte*>(&entry) + 16, &word, sizeof(word));
    std::memcpy(reinterpret_cast<std::byte*>(&entry) + 56, &place, sizeof(place));
}

enum class Poll { kNothing, kEntry, kViolation };

inline constexpr size_t kLineWords = kLineSize / sizeof(uint64_t);

// Writes `entry` into the line of `index`. Repeating it with the same bytes changes nothing, so
// recovery may store a committed completion again.
template <typename Line, typename Entry>
void store_line(Line* lines, uint32_t entries, uint64_t index, const Entry& entry) {
    static_assert(sizeof(Line) == kLineSize && sizeof(Entry) == kLineSize);
    Line& line = lines[index & (entries - 1)];
    auto* words = reinterpret_cast<SharedWord*>(&line);
    store_words(words + 1, reinterpret_cast<const SharedWord*>(&entry) + 1, kLineWords - 1);
    line.sequence.store(index + 1, std::memory_order_release);  // pairs with RingConsumer::peek
}

// The side that writes. How many lines are free is said by the other side's index, which the
// caller reads (and checks, if it is untrusted) and hands in.
template <typename Line, typename Entry>
class RingProducer {
  public:
    RingProducer() = default;
    RingProducer(Line* lines, uint32_t entries, uint64_t tail)
        : lines_(lines), entries_(entries), tail_(tail), released_(tail) {}

    // Lines below `index` may be written again. False if that index cannot be: it goes back, or
    // lies before the tail's ring or behind the tail.
    [[nodiscard]] bool release_to(uint64_t index) {
        if (index > tail_ || tail_ - index > entries_) return false;
        released_ = index;
        return true;
    }
    [[nodiscard]] uint32_t room() const {
        return entries_ - static_cast<uint32_t>(tail_ - released_);
    }
    [[nodiscard]] uint64_t tail() const { return tail_; }
    [[nodiscard]] uint32_t entries() const { return entries_; }

    // Needs room() > 0. The entry is visible to a polling consumer at once; a sleeping one learns
    // of it by the doorbell (shm/doorbell.hpp).
    void push(const Entry& entry) {
        store_line(lines_, entries_, tail_, entry);
        ++tail_;
    }
    // Pushes as many of `count` as there is room for; returns how many.
    uint32_t push_bulk(const Entry* from, uint32_t count) {
        const uint32_t pushed = count < room() ? count : room();
        for (uint32_t i = 0; i < pushed; ++i)
            push(from[i]);
        return pushed;
    }

  private:
    Line* lines_ = nullptr;
    uint32_t entries_ = 0;
    uint64_t tail_ = 0;      // index of the next entry
    uint64_t released_ = 0;  // the consumer's index, as last told
};

// The side that reads. It never writes to the lines, so they may be mapped read-only.
template <typename Line, typename Entry>
class RingConsumer {
  public:
    RingConsumer() = default;
    RingConsumer(const Line* lines, uint32_t entries, uint64_t head)
        : lines_(lines), entries_(entries), head_(head) {}

    // Copies the next entry, once, and leaves the head where it is; `out` holds what was checked
    // and nothing is read again.
    [[nodiscard]] Poll peek(Entry& out) const {
        static_assert(sizeof(Line) == kLineSize && sizeof(Entry) == kLineSize);
        const Line& line = lines_[head_ & (entries_ - 1)];
        // Pairs with store_line's release: makes the other seven words visible.
        const uint64_t sequence = line.sequence.load(std::memory_order_acquire);
        if (sequence != head_ + 1) return sequence == before() ? Poll::kNothing : Poll::kViolation;
        const auto* words = reinterpret_cast<const SharedWord*>(&line);
        load_words(words + 1, reinterpret_cast<SharedWord*>(&out) + 1, kLineWords - 1);
        out.sequence = sequence;
        return Poll::kEntry;
    }
    [[nodiscard]] Poll pop(Entry& out) {
        const Poll poll = peek(out);
        if (poll == Poll::kEntry) ++head_;
        return poll;
    }
    // Passes over what was peeked.
    void skip() { ++head_; }
    // Pops at most `count`; returns how many. A violation stops it and is seen by the next peek.
    uint32_t pop_bulk(Entry* out, uint32_t count) {
        uint32_t popped = 0;
        while (popped < count && pop(out[popped]) == Poll::kEntry)
            ++popped;
        return popped;
    }
    // One load and no copy: is there anything but "nothing new"?
    [[nodiscard]] bool maybe() const {
        const Line& line = lines_[head_ & (entries_ - 1)];
        return line.sequence.load(std::memory_order_acquire) != before();
    }
    [[nodiscard]] uint64_t head() const { return head_; }
    [[nodiscard]] uint32_t entries() const { return entries_; }

  private:
    // What the line of the head holds as long as the producer has not come round to it.
    [[nodiscard]] uint64_t before() const { return head_ < entries_ ? 0 : head_ + 1 - entries_; }

    const Line* lines_ = nullptr;
    uint32_t entries_ = 0;
    uint64_t head_ = 0;  // index of the next entry
};

using SubmissionProducer = RingProducer<SubmissionEntry, Submission>;  // the client
using SubmissionConsumer = RingConsumer<SubmissionEntry, Submission>;  // the broker
using CompletionProducer = RingProducer<CompletionEntry, Completion>;  // the broker
using CompletionConsumer = RingConsumer<CompletionEntry, Completion>;  // the client

}  // namespace dibs::shm
