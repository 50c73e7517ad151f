// broker/session/grant_room.hpp -- writes a grant into its room in DOWN.
// A room has a head, then a region for each unit, with the slot's number, its attributes and the
// worker's answer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "broker/core/core.hpp"
#include "broker/session/session.hpp"
#include "shm/layout.hpp"

namespace dibs {

// The region of the unit at `index`.
inline std::byte* grant_region(Session& session, const TagRoom& room, uint32_t index) {
    return session.payload + size_t{room.first} * shm::kLineSize + sizeof(shm::GrantHead) +
           size_t{index} * room.stride;
}

inline shm::GrantSlot* grant_slot(Session& session, const TagRoom& room, uint32_t index) {
    return reinterpret_cast<shm::GrantSlot*>(grant_region(session, room, index));
}

// The worker's confirmation: written by the broker, in memory that no client writes.
inline std::span<const uint8_t> first_answer(Session& session,
                                             const TagRoom& room,
                                             uint32_t index) {
    const std::byte* unit = grant_region(session, room, index);
    return {reinterpret_cast<const uint8_t*>(unit + room.answer_place),
            grant_slot(session, room, index)->answer_size};
}

// Of a claim over several pools.
constexpr uint64_t several_size(uint32_t stride, uint32_t units) {
    return sizeof(shm::GrantHead) + uint64_t{stride} * units + sizeof(shm::GrantParts);
}

// As its head says, and the lines that it takes; its claim is over several pools if `several`. No
// lines: it cannot be.
TagRoom several_room(const Session& session, uint32_t first);

// Its head, and whose the regions are, before anything is granted.
void begin_several(Session& session, const TagRoom& room, std::span<const core::PoolUnits> pools);

// The pool's part of it, with the index of its first region.
shm::GrantPart* grant_part(Session& session, const TagRoom& room, uint32_t pool);

// Head and slots of a grant. On a worker pool the answers are there already.
void write_grant(const core::Core& core,
                 Session& session,
                 const TagRoom& room,
                 std::span<const core::DecidedSlot> slots,
                 bool counted);
// The same of one of several pools. Returns the units of all.
uint16_t write_part(const core::Core& core,
                    Session& session,
                    const TagRoom& room,
                    const core::Decision& granted);

// What an assigned part has of each resource, or an ordered worker is to have: texts, each ended by
// a zero byte.
std::string amount_texts(const core::Core& core, const core::Decision& told);

// The same of an assigned part, into the payload area from `place` on; returns the
// size.
uint16_t write_amounts(const core::Core& core,
                       const core::Decision& assigned,
                       Session& session,
                       uint64_t place);

// What the worker of the unit at `index` has confirmed with or, `last`, said done with: bytes, then
// the size. The room has a place for each, because the holder may read the first one by then.
void write_answer(Session& session,
                  const TagRoom& room,
                  uint32_t index,
                  std::span<const uint8_t> answer,
                  bool last);

}  // namespace dibs
