// broker/turn/prepared_grant.cpp -- prepares a grant between turns, and publishes it if it fits.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/prepared_grant.hpp"

#include <algorithm>

#include "broker/session/grant_room.hpp"
#include "shm/ring.hpp"

namespace dibs {

void PreparedGrant::work_out() {
    looked_ = true;
    prepared_ = expected_ != nullptr && expected_->polled && work_out_for(*expected_);
}

bool PreparedGrant::work_out_for(Session& session) {
    if (!session.singly || session.bounded || session.completion_room() == 0) return false;
    if (core_.stores_owed()) return false;  // a draft would stand in their place
    const uint16_t tag = operations_.tag_to_come(session);
    if (tag >= session.tags.size() || session.tags[tag].first != shm::kNoRow ||
        session.events[tag].load(std::memory_order_relaxed) != 0) {
        return false;
    }
    command_ = {};
    command_.session = session.row;
    command_.tag = tag;
    command_.units = 1;
    command_.pool = session.claimed_pool;
    command_.timeout_ns = shm::kNever;
    command_.refusal = operations_.pool_refusal(session, command_.pool);
    TagRoom room = operations_.room_to_come(session, {command_.pool, 1});
    command_.room = room.first;
    command_.room_lines = room.lines;
    core::Core::Foreseen seen;
    if (command_.room == shm::kNoRow || !core_.foresee_next(command_, &seen)) return false;
    write_grant(core_, session, room, {&seen.slot, 1}, true);
    told_ = {};
    told_.sequence = session.completion_tail + 1;
    shm::set_grant(
        told_, 1, tag, seen.reason, command_.room * static_cast<uint32_t>(shm::kLineSize));
    told_.id = seen.lease;
    told_.fence = seen.fence;
    told_.claim = seen.claim;
    interval_max_ns_ = core_.pool(command_.pool).interval_max_ns;
    due_ns_ = core_.next_due();
    core_.draft_pledge(command_, told_);
    return true;
}

// A lease with an interval may not be parked, and this one says that it may.
bool PreparedGrant::fits(const shm::Submission& entry) const {
    if (entry.fence != 0 && told_.reason != shm::Reason::kOk) return false;
    return Operations::is_plain_claim(entry) && entry.pool == command_.pool && entry.units == 1 &&
           entry.tag == command_.tag;
}

Session* PreparedGrant::find(const std::vector<Session*>& polled, shm::Submission& entry) const {
    if (!prepared_ || !expected_->polled) return nullptr;
    for (const Session* other : polled) {
        if (other != expected_ && other->up.maybe()) return nullptr;
    }
    const bool found = expected_->up.peek(entry) == shm::Poll::kEntry && fits(entry);
    return found ? expected_ : nullptr;
}

bool PreparedGrant::tell(core::TimeNs now, const shm::Submission& claim) {
    if (std::max(core_.now(), now) >= due_ns_) return false;
    // A turn that begins plainly is still to begin: between turns nothing changes.
    if (!core_.begins_plainly() && !core_.still_foreseen()) return false;
    Session& session = *expected_;
    told_.user_data = claim.user_data;
    told_.value = std::min(claim.fence, interval_max_ns_);
    core_.set_hand(session.row, claim.sequence);
    core_.sign_pledge(told_, now);
    shm::store_line(
        session.completions, session.sizes.completion_entries, session.completion_tail, told_);
    session.announce(session.completion_tail + 1);
    pledges_.has_told(command_.room);
    return true;
}

}  // namespace dibs
