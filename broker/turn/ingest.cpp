// broker/turn/ingest.cpp -- reads and validates what a client writes into UP.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/ingest.hpp"

#include "broker/session/session.hpp"
#include "broker/turn/operations.hpp"
#include "broker/turn/pledges.hpp"

namespace dibs {

namespace {

// Room for sixteen of the largest payloads: a turn with more of them goes on in the next one.
constexpr size_t kScratchSize = size_t{16} * shm::kPayloadMax;
constexpr size_t kScratchAlign = 16;
static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= kScratchAlign);

}  // namespace

Upstream::Upstream(std::byte* up, const shm::SessionSizes& sizes, uint64_t head)
    : payload_size_(sizes.up_payload) {
    const shm::UpPlan plan = shm::plan_up(sizes);
    head_ = reinterpret_cast<const shm::UpHead*>(up);
    histogram_ = reinterpret_cast<const shm::UpHistogram*>(up + plan.histogram);
    lease_words_ = reinterpret_cast<shm::LeaseWord*>(up + plan.lease_word);
    touch_words_ = reinterpret_cast<const shm::TouchWord*>(up + plan.touch_word);
    payload_ = up + plan.payload;
    ring_ =
        shm::SubmissionConsumer(reinterpret_cast<const shm::SubmissionEntry*>(up + plan.submission),
                                sizes.submission_entries,
                                head);
}

Armed Upstream::look_again() const {
    const uint64_t tail = shm::published_submissions(*head_);
    if (ring_.maybe()) return Armed::kEntry;
    // A tail behind the head is a batch that was taken before it was announced.
    return tail > ring_.head() ? Armed::kViolation : Armed::kQuiet;
}

bool Upstream::copy_payload(uint32_t offset, uint32_t size, std::byte* out) const {
    if (size > payload_size_ || offset > payload_size_ - size) return false;
    std::memcpy(out, payload_ + offset, size);
    return true;
}

// The fence behind the word: its client stores it before it takes the word.
LeaseWordSeen Upstream::seen(const shm::LeaseWord& at, uint64_t word, uint64_t number) {
    LeaseWordSeen seen;
    seen.wanted = (word & shm::LeaseWordBit::kWanted) != 0;
    seen.later = word >> 2U > number;
    if (word >> 2U != number) return seen;
    seen.fence = at.fence.load(std::memory_order_relaxed);
    seen.parked = (word & shm::LeaseWordBit::kFree) != 0;
    return seen;
}

LeaseWordSeen Upstream::lease_word(uint16_t tag, uint64_t number) const {
    const shm::LeaseWord& at = lease_words_[tag];
    return seen(at, at.word.load(std::memory_order_acquire), number);
}

LeaseWordSeen Upstream::want_lease(uint16_t tag, uint64_t number) const {
    const shm::LeaseWord& at = lease_words_[tag];
    const uint64_t before =
        lease_words_[tag].word.fetch_or(shm::LeaseWordBit::kWanted, std::memory_order_acq_rel);
    return seen(at, before, number);
}

Ingest::Ingest(core::Core& core, Operations& operations, Pledges& pledges)
    : core_(core), operations_(operations), pledges_(pledges), scratch_(kScratchSize) {}

bool Ingest::turn_full() const {
    return core_.turn_full() || operations_.full() || used_ + shm::kPayloadMax > scratch_.size();
}

// An empty span for no payload, and for one that is out of its area: the operation's check sees
// the difference in its size.
std::span<const uint8_t> Ingest::take_payload(const Session& session,
                                              const shm::Submission& entry) {
    if (entry.payload_size == 0 || entry.payload_size > shm::kPayloadMax) return {};
    std::byte* to = scratch_.data() + used_;
    if (!session.up.copy_payload(entry.payload_offset, entry.payload_size, to)) return {};
    used_ += (entry.payload_size + kScratchAlign - 1) / kScratchAlign * kScratchAlign;
    return {reinterpret_cast<const uint8_t*>(to), entry.payload_size};
}

Ingest::Read Ingest::read(Session& session, uint32_t budget) {
    if (!session.singly) pledges_.refrain();
    const uint64_t before = session.up.head();
    const Read read = take(session, budget);
    // Looked at here, when a pledge has been published: the next line may be on its way.
    session.singly = session.up.head() - before == 1 && !session.up.maybe();
    return read;
}

void Ingest::read_answered(Session& session, const shm::Submission& claim) {
    session.up.skip();
    operations_.apply(session, claim, {});
    session.singly = !session.up.maybe();
}

Ingest::Read Ingest::take(Session& session, uint32_t budget) {
    shm::Submission entry;
    for (uint32_t taken = 0; taken < budget; ++taken) {
        if (!session.up.maybe()) return Read::kOpen;
        if (taken != 0) {
            if (turn_full()) return Read::kMore;  // the caller has asked before
            pledges_.refrain();
        }
        const shm::Poll poll = session.up.pop(entry);
        if (poll == shm::Poll::kNothing) return Read::kOpen;  // taken back since the look
        if (poll == shm::Poll::kViolation) return Read::kViolation;
        if (entry.op == shm::Op::kClose) return Read::kClosed;
        core_.set_hand(session.row, entry.sequence);
        operations_.apply(session, entry, take_payload(session, entry));
        if (pledges_.told()) return Read::kMore;
    }
    return session.up.maybe() ? Read::kMore : Read::kOpen;
}

}  // namespace dibs
