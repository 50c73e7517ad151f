// clientlib/requeue.cpp -- gives back a lease whose slot was taken; its claim waits again.
//
// An entry that has been taken out of the ring may not have reached the caller yet, and a lease
// that is given back may have been granted again meanwhile. A caller that gives back a lease gives
// up everything that its claim has become since, unless the caller has been told of it.
// SPDX-License-Identifier: Apache-2.0
#include "clientlib/session.hpp"

namespace dibs::client {

void Session::wait_again(uint32_t tag, int code) {
    Tag& row = tags[tag];
    if (row.release_owed) {  // no caller waits: cancelled, or released once it is granted
        row.release_owed = false;
        row.abandoned = true;
        row.cancel_owed = true;
        if (row.event != 0) --events_to_reap;
        row.event = 0;
    } else {
        if (row.event == 0) ++events_to_reap;
        row.event = shm::LeaseEvent::kRequeued;
    }
    row.event_seen = 0;
    row.touched_ticks = 0;
    row.end_code = code;
    row.was_lease = row.lease;
    row.was_fence = row.fence;
    row.lease = 0;
    row.state = TagState::kClaiming;
    --live;
    if (!row.requeue) ++claims_open;
    row.requeue = true;
}

void Session::abandon(uint32_t tag) {
    Tag& row = tags[tag];
    if (row.event != 0) --events_to_reap;
    row.event = 0;
    row.abandoned = true;
    row.cancel_owed = true;
    ++owed;
    settle();
}

namespace {

// A claim's end, or that it waits again.
bool tells_of_claim(const dibs_completion& told, uint64_t claim) {
    const bool kind = told.kind == DIBS_CLAIM_ENDED || told.kind == DIBS_LEASE_REQUEUED;
    return kind && told.claim == claim;
}

// True if there was something to forget.
bool forget_claim(Queue<dibs_completion>& stash, uint64_t claim) {
    const uint32_t before = stash.count;
    for (uint32_t left = before; left > 0; --left) {
        const dibs_completion told = stash.pop();
        if (!tells_of_claim(told, claim)) stash.push(told);
    }
    return stash.count != before;
}

}  // namespace

// Making room for the release may have taken in that the claim had waited again, and how that
// ended. The broker, which reads the claim's name in the release, takes it all back.
void Session::give_up(uint32_t tag, uint32_t use, uint64_t claim) {
    (void)forget_claim(stash, claim);
    if (tags[tag].use == use) free_tag_row(tag);
}

bool Session::give_up_untold(const dibs_lease& lease) {
    if (lease.session != name || lease.tag >= sizes.tags || lease.id == 0) return false;
    Tag& row = tags[lease.tag];
    uint64_t claim = row.was_lease == lease.id ? row.claim : 0;
    for (uint32_t i = 0; i < stash.count && claim == 0; ++i) {
        const dibs_completion& told = stash.items[(stash.first + i) % stash.capacity];
        if (told.kind == DIBS_LEASE_REQUEUED && told.lease.id == lease.id) claim = told.claim;
    }
    if (claim == 0 || !forget_claim(stash, claim)) return false;
    if (row.claim != claim) return true;  // it has ended, and the tag is free or another's
    if (row.state == TagState::kClaiming) {
        abandon(lease.tag);
    } else if (row.state == TagState::kOver) {
        free_tag_row(lease.tag);
    } else if (row.state == TagState::kLive && !row.release_owed) {
        row.release_owed = true;
        ++owed;
        settle();
    }
    return true;
}

// Told later it would be news of a lease before the present one.
void Session::tell_before_grant(uint32_t tag) {
    if (tags[tag].event != shm::LeaseEvent::kRequeued) return;
    dibs_completion out;
    fill_event(tag, out);
    if (stash.count + 1 < stash.capacity) stash.push(out);
}

}  // namespace dibs::client
