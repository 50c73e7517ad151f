// broker/turn/routed_claims.cpp -- makes one command of a claim that names more than one pool.
//
// Of a set: which pool takes it is the core's to say, and is known once the command is applied.
// Until then what depends on the pool is as the largest needs it. Over several: one room has the
// slots of all, one pool's behind the other's, in regions as large as the largest one needs; which
// are whose stands behind them from the beginning, as workers may answer before the grant.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "broker/core/look.hpp"
#include "broker/session/grant_room.hpp"
#include "broker/turn/operations.hpp"
#include "broker/turn/pool_sets.hpp"
#include "shm/operation.hpp"

namespace dibs {

using shm::Reason;

// Members whose pools this claim may have: the others are left out, and where none is left the
// first one's reason is told.
Reason Operations::members_of_claim(const Session& session,
                                    const shm::Submission& entry,
                                    std::span<const uint8_t> payload,
                                    const core::Route& set) {
    members_.clear();
    const size_t ruled = ruled_.size();
    Reason first = Reason::kOk;
    size_t ruled_by_first = ruled;
    for (const core::RouteMember& member : set.members) {
        shm::Submission one = entry;
        one.flags &= static_cast<uint8_t>(~shm::OpFlag::kOfSet);
        one.pool = static_cast<uint16_t>(member.pool);
        const Reason refusal = claim_refusal(session, one, payload);
        if (refusal == Reason::kOk) members_.push_back(member);
        if (refusal != Reason::kOk && first == Reason::kOk) {
            first = refusal;
            ruled_by_first = ruled_.size();
        }
        ruled_.resize(ruled_by_first, {});
    }
    if (members_.empty()) return first;
    ruled_.resize(ruled, {});
    return Reason::kOk;
}

void Operations::claim_of_set(Session& session,
                              const shm::Submission& entry,
                              std::span<const uint8_t> payload) {
    core::Claim command = command_of(session, entry, payload);
    command.pool = {};
    const core::Route* set = sets_ == nullptr ? nullptr : sets_->route_of_claim(entry.pool);
    core::Route route = set == nullptr ? core::Route{} : *set;
    command.refusal =
        set == nullptr ? Reason::kUnknownPool : members_of_claim(session, entry, payload, route);
    route.members = members_;
    uint32_t largest = 0;
    for (const core::RouteMember& member : members_) {
        if (grant_stride(core_.pool(member.pool)) >= grant_stride(core_.pool(largest)) ||
            &member == members_.data()) {
            largest = member.pool;
        }
    }
    give_room(session, largest, &command);
    bring(&command);
    if (command.refusal == Reason::kOk) {
        words_.look_for_free(members_, command.units);
        command.route = &route;
    } else if (set != nullptr) {
        command.pool = set->members.front().pool;
    }
    core_.apply(command);
    const uint32_t pool = core::Look::pool_of_claim(core_, session.row, entry.tag);
    if (command.refusal != Reason::kOk || pool == shm::kNoRow) return;
    if (command.room != shm::kNoRow) {
        session.tags[entry.tag].stride = grant_stride(core_.pool(pool));
        session.tags[entry.tag].answer_place = grant_answer_place(core_.pool(pool));
    }
    words_.make_room(pool, 0);  // it waits there by now
}

bool Operations::names_further(const Session& session) const {
    return std::all_of(claims_.also().begin(), claims_.also().end(), [&](const auto& further) {
        return quotas_.names(session, further.pool);
    });
}

// Pools and sizes that the core will reject need none: no lines.
TagRoom Operations::room_of_several(std::span<const core::PoolUnits> pools) const {
    uint32_t units = 0;
    uint32_t place = 0;
    uint32_t answers = 0;
    for (const core::PoolUnits& part : pools) {
        if (part.pool >= core_.pools() || part.units == 0) return {};
        const shm::PoolRow& pool = core_.pool(part.pool);
        units += part.units;
        place = std::max(place, grant_answer_place(pool));
        answers = std::max(answers, grant_stride(pool) - grant_answer_place(pool));
    }
    if (units > shm::kUnitsMax) return {};
    const auto stride = static_cast<uint32_t>(shm::round_up(uint64_t{place} + answers, 8));
    return {
        .lines = room_lines(several_size(stride, units)), .stride = stride, .answer_place = place};
}

// False: there is no room.
bool Operations::take_room_of_several(Session& session,
                                      uint16_t tag,
                                      std::span<const core::PoolUnits> pools,
                                      GrantRoom* taken) {
    const TagRoom room = room_of_several(pools);
    if (room.lines == 0) return true;
    if (!take_room(session, tag, room, taken)) return false;
    begin_several(session, session.tags[tag], pools);
    return true;
}

// As large as its grant's was.
bool Operations::take_room_of_lease(Session& session,
                                    uint16_t tag,
                                    uint32_t row,
                                    GrantRoom* taken) {
    const std::vector<core::PoolUnits> pools = core::Look::pools_of_lease(core_, row);
    if (pools.size() > 1) return take_room_of_several(session, tag, pools, taken);
    const shm::LeaseRow& lease = core_.lease(row);
    return take_grant_room(session, tag, {lease.pool, lease.units}, taken);
}

void Operations::claim_of_several(Session& session,
                                  const shm::Submission& entry,
                                  core::Claim* command) {
    bring(command);
    std::array<core::PoolUnits, shm::kGrantPartsMax> pools;
    pools[0] = {entry.pool, entry.units};
    std::copy(command->also.begin(), command->also.end(), pools.begin() + 1);
    const std::span all(pools.data(), command->also.size() + 1);
    GrantRoom room;
    if (!take_room_of_several(session, entry.tag, all, &room)) {
        const auto bytes = static_cast<uint32_t>(room_of_several(all).lines * shm::kLineSize);
        command->refusal = ruled(Reason::kNoRoom, {shm::RuleKey::kDownPayload, bytes});
        words_.recall_of(session);
    }
    command->room = room.first;
    command->room_lines = room.lines;
    if (command->refusal == Reason::kOk) {
        for (const core::PoolUnits& part : all)
            words_.make_room(part.pool, part.units);
    }
    core_.apply(*command);
}

}  // namespace dibs
