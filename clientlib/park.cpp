// clientlib/park.cpp -- puts a lease aside, and takes it again, without a word to the broker.
//
// A lease that the broker says may be parked has a word in UP (shm/layout.hpp, LeaseWord). A
// release makes the word free, and the next plain claim of the pool takes it: one compare-and-swap
// each. The broker may make it wanted at any time. If it was free then, the lease has ended by
// that; if it was taken, the release goes through the ring. Nothing here looks for other claims. A
// take reads the tick counter, so that it learns of a broker that has gone within 100 ms.
// SPDX-License-Identifier: Apache-2.0
#include "clientlib/session.hpp"

namespace dibs::client {

namespace {

uint64_t taken_word(const Tag& row) {
    return row.claim << 2U;
}

}  // namespace

bool Session::park(uint32_t tag) {
    Tag& row = tags[tag];
    shm::LeaseWord& at = lease_words[tag];
    uint64_t expected = taken_word(row);
    if (!row.parked_before) {  // it names the lease before, as taken
        expected = at.word.load(std::memory_order_relaxed) & ~kLeaseWordBits;
        at.fence.store(row.fence, std::memory_order_relaxed);
    }
    if (!at.word.compare_exchange_strong(expected,
                                         taken_word(row) | shm::LeaseWordBit::kFree,
                                         std::memory_order_release,
                                         std::memory_order_relaxed)) {
        return false;
    }
    row.parked_before = true;
    row.state = TagState::kParked;
    row.next_free = parked_tag;
    parked_tag = tag;
    --live;
    return true;
}

bool Session::take_word(uint32_t tag) {
    Tag& row = tags[tag];
    shm::LeaseWord& at = lease_words[tag];
    // Before the word: a broker that finds it taken finds this fence, or a later one.
    at.fence.store(row.fence + 1, std::memory_order_relaxed);
    uint64_t expected = taken_word(row) | shm::LeaseWordBit::kFree;
    if (!at.word.compare_exchange_strong(
            expected, taken_word(row), std::memory_order_acq_rel, std::memory_order_relaxed)) {
        free_tag_row(tag);  // recalled: it has ended
        return false;
    }
    ++row.fence;
    row.state = TagState::kLive;
    row.event_seen = 0;
    ++live;
    return true;
}

bool Session::take_parked(uint32_t pool, dibs_completion& out) {
    for (uint32_t* link = &parked_tag; *link != kNone;) {
        const uint32_t tag = *link;
        Tag& row = tags[tag];
        if (row.pool != pool) {
            link = &row.next_free;
            continue;
        }
        // A broker that has lost its state grants the slot anew.
        if (!still_open(ticks())) return false;
        *link = row.next_free;
        if (!take_word(tag)) continue;
        row.user_data = 0;
        out = {};
        out.kind = DIBS_CLAIM_ENDED;
        out.outcome = DIBS_GRANTED;
        out.claim = row.claim;
        out.pool = pool;
        out.lease = lease_of(*this, tag);
        return true;
    }
    return false;
}

void Session::unpark_one() {
    const uint32_t tag = parked_tag;
    if (tag == kNone) return;
    parked_tag = tags[tag].next_free;
    if (!take_word(tag)) return;
    tags[tag].release_owed = true;
    ++owed;
    settle();
}

bool Session::is_parked(const dibs_lease& lease) const {
    if (lease.session != name || lease.tag >= sizes.tags) return false;
    const Tag& row = tags[lease.tag];
    return row.state == TagState::kParked && row.lease == lease.id;
}

}  // namespace dibs::client
