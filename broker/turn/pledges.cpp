// broker/turn/pledges.cpp -- foresees a grant, writes, pledges and publishes it, in this order.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/pledges.hpp"

#include "broker/session/grant_room.hpp"
#include "shm/ring.hpp"

namespace dibs {

bool Pledges::tell(Session& session, const core::Claim& command) {
    core::Core::Foreseen seen;
    // The word of the tag's last lease must not be taken for this one's, and clearing it is a store
    // of its own.
    if (session.completion_room() == 0 ||
        session.events[command.tag].load(std::memory_order_relaxed) != 0 ||
        !core_.foresee(command, &seen)) {
        return false;
    }
    write_grant(core_, session, session.tags[command.tag], {&seen.slot, 1}, true);
    shm::Completion entry;
    entry.sequence = session.completion_tail + 1;
    entry.user_data = command.user_data;
    shm::set_grant(
        entry, 1, command.tag, seen.reason, command.room * static_cast<uint32_t>(shm::kLineSize));
    entry.id = seen.lease;
    entry.fence = seen.fence;
    entry.value = seen.interval_ns;
    entry.claim = seen.claim;
    core_.pledge(command, entry);
    shm::store_line(
        session.completions, session.sizes.completion_entries, session.completion_tail, entry);
    session.announce(session.completion_tail + 1);
    return true;
}

}  // namespace dibs
