// broker/core/match/several_leases.cpp -- keeps the lease rows of one claim together.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

TimeNs SeveralPools::interval_max(const shm::LeaseRow& lease) const {
    TimeNs least_ns = state.pools[lease.pool].interval_max_ns;
    if (!is_several(lease)) return least_ns;
    each(state.leases, first_row_of(lease), [&](uint32_t row) {
        least_ns = std::min(least_ns, state.pools[state.leases[row].pool].interval_max_ns);
    });
    return least_ns;
}

TimeNs SeveralPools::grace(const shm::LeaseRow& lease) const {
    TimeNs least_ns = state.pools[lease.pool].grace_ns;
    if (!is_several(lease)) return least_ns;
    each(state.leases, first_row_of(lease), [&](uint32_t row) {
        least_ns = std::min(least_ns, state.pools[state.leases[row].pool].grace_ns);
    });
    return least_ns;
}

uint32_t SeveralPools::units_of(uint32_t row) const {
    const shm::LeaseRow& lease = state.leases[row];
    if (!is_several(lease)) return lease.units;
    uint32_t units = 0;
    each(state.leases, row, [&](uint32_t part) { units += state.leases[part].units; });
    return units;
}

void SeveralPools::follow(uint32_t row) {
    const shm::LeaseRow& first = state.leases[row];
    if (!is_several(first)) return;
    each(state.leases, row, [&](uint32_t part) {
        if (part == row) return;
        shm::LeaseRow& lease = edit().row(state.leases[part], 1U | 1U << 1U);
        put(lease.state, first.state);
        put(lease.mode, first.mode);
        put(lease.session, first.session);
        put(lease.tag, first.tag);
        put(lease.expires_ns, first.expires_ns);
        put(lease.interval_ns, first.interval_ns);
        put(lease.kept_ns, first.kept_ns);
        put(lease.user_data, first.user_data);
        put(lease.grace_until_ns, first.grace_until_ns);
        put(lease.room, first.room);
        put(lease.room_lines, first.room_lines);
    });
}

void SeveralPools::kill_further(uint32_t row) {
    if (!is_several(state.leases[row])) return;
    follow(row);
    each(state.leases, row, [&](uint32_t part) {
        if (part == row) return;
        for (uint32_t slot = state.leases[part].first_slot; slot != kNoRow;
             slot = state.slots[slot].holder_next)
            slots().move_slot(slot, SlotState::kRecovering);
    });
}

void SeveralPools::end_lease(
    uint32_t any_row, Reason reason, Tell tell, bool broken, uint32_t except) {
    const uint32_t first = first_lease(any_row);
    Heads further{};
    uint32_t count = 0;
    each(state.leases, first, [&](uint32_t row) {
        const shm::LeaseRow& lease = state.leases[row];
        if (row == first) return;
        if (leases().ended.wanted()) leases().note_end(row, reason);
        if (tell == Tell::kNobody) {
            shm::PoolRow& pool = edit().row(state.pools[lease.pool], kPoolStates);
            put(pool.released_total, pool.released_total + 1);
        }
        leases().pool_leases.remove(lease.pool, row);
        shm::SessionRow& session = edit().row(state.sessions[lease.session], 1);
        put(session.leases, session.leases - 1);
        further[count++] = lease.first_slot;
        free_rows().free_lease_row(row);
    });
    put(edit().row(state.leases[first], 1U << 1U).several, 0);  // a plain one from here on
    leases().end_lease(first, reason, tell, broken, except);
    for (uint32_t part = 0; part < count; ++part)
        slots().give_back_chain(further[part], true, broken, except);
}

// Behind what is told of the first one.
void SeveralPools::tell_further(Decision* adopted, uint32_t row) {
    const shm::LeaseRow& first = state.leases[row];
    if (!is_several(first)) return;
    adopted->round = first.several;
    uint8_t index = 0;
    each(state.leases, row, [&](uint32_t part) {
        if (index++ == 0) return;
        ++turn().grants;
        Decision& further = leases().tell_of_lease(DecisionKind::kAdopted, part);
        further.value = first.interval_ns;
        further.round = first.several;
        further.part = static_cast<uint8_t>(index - 1);
        turn().list_slots(&further, state.leases[part].first_slot);
    });
}

}  // namespace dibs::core
