// broker/session/grant_room.cpp -- writes a grant's head, slots and answers into its room.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session/grant_room.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

namespace dibs {

namespace {

void add_resources(const core::Core& core, uint32_t part, uint32_t fit, shm::GrantSlot* out) {
    for (const core::Resource& resource : core.resources(core.slot(part).pool, part)) {
        const std::string text =
            "resource." + resource.name + "=" + std::to_string(resource.amount);
        const auto size = static_cast<uint32_t>(text.size() + 1);
        if (size > fit - out->attributes_size) return;
        std::memcpy(
            reinterpret_cast<std::byte*>(out + 1) + out->attributes_size, text.c_str(), size);
        out->attributes_size += size;
    }
}

}  // namespace

namespace {

shm::GrantHead* grant_head(const Session& session, uint32_t first) {
    return reinterpret_cast<shm::GrantHead*>(session.payload + size_t{first} * shm::kLineSize);
}

shm::GrantParts* grant_parts(Session& session, const TagRoom& room) {
    return reinterpret_cast<shm::GrantParts*>(
        grant_region(session, room, grant_head(session, room.first)->units));
}

// From the region at `begin` on.
void write_slots(const core::Core& core,
                 Session& session,
                 const TagRoom& room,
                 std::span<const core::DecidedSlot> slots,
                 bool counted,
                 uint32_t begin) {
    for (uint32_t i = 0; i < slots.size(); ++i) {
        const shm::SlotRow& taken = core.slot(slots[i].row);
        // Of a part the attributes are its slot's, and what it has of each resource.
        const bool is_part = taken.part_of != shm::kNoRow;
        const shm::SlotRow& slot = is_part ? core.slot(taken.part_of) : taken;
        shm::GrantSlot* out = grant_slot(session, room, begin + i);
        // The row's second line is only looked at where there may be attributes.
        const uint32_t fit = room.answer_place - static_cast<uint32_t>(sizeof(shm::GrantSlot));
        out->number = slots[i].number;
        out->attributes_size =
            fit != 0 && slot.attributes_size <= fit ? slot.attributes_size : uint32_t{0};
        // A counted slot has no worker to ask, nor has one whose worker does not attach.
        if (counted || slot.session == shm::kNoRow) out->answer_size = 0;
        out->done_size = 0;
        if (out->attributes_size != 0) {
            core.copy_chain(slot.attributes,
                            out->attributes_size,
                            reinterpret_cast<std::byte*>(out) + sizeof(shm::GrantSlot));
        }
        if (is_part) add_resources(core, slots[i].row, fit, out);
    }
}

}  // namespace

void write_grant(const core::Core& core,
                 Session& session,
                 const TagRoom& room,
                 std::span<const core::DecidedSlot> slots,
                 bool counted) {
    const auto pool = static_cast<uint16_t>(core.slot(slots.front().row).pool);
    *grant_head(session, room.first) = {
        static_cast<uint16_t>(slots.size()), pool, room.stride, room.answer_place, 0};
    write_slots(core, session, room, slots, counted, 0);
}

TagRoom several_room(const Session& session, uint32_t first) {
    const shm::GrantHead& head = *grant_head(session, first);
    return {.first = first,
            .lines = room_lines(several_size(head.stride, head.units)),
            .stride = head.stride,
            .answer_place = head.answer_place};
}

void begin_several(Session& session, const TagRoom& room, std::span<const core::PoolUnits> pools) {
    uint32_t units = 0;
    shm::GrantParts parts = {};
    for (const core::PoolUnits& pool : pools) {
        const auto row = static_cast<uint16_t>(pool.pool);
        parts.parts[parts.count++] = {row, pool.units, units, 0, 0};
        units += pool.units;
    }
    const auto first_pool = static_cast<uint16_t>(pools.front().pool | shm::kGrantOfSeveral);
    *grant_head(session, room.first) = {
        static_cast<uint16_t>(units), first_pool, room.stride, room.answer_place, 0};
    *grant_parts(session, room) = parts;
}

shm::GrantPart* grant_part(Session& session, const TagRoom& room, uint32_t pool) {
    shm::GrantParts& parts = *grant_parts(session, room);
    return std::find_if(std::begin(parts.parts),
                        std::begin(parts.parts) + parts.count,
                        [&](const shm::GrantPart& part) { return part.pool == pool; });
}

uint16_t write_part(const core::Core& core,
                    Session& session,
                    const TagRoom& room,
                    const core::Decision& granted) {
    const bool counted = core.pool(granted.pool).kind == shm::PoolKind::kCounted;
    shm::GrantHead& head = *grant_head(session, room.first);
    head.left_ms = 0;
    shm::GrantPart& part = *grant_part(session, room, granted.pool);
    part.lease = granted.id;
    part.fence = granted.fence;
    write_slots(core, session, room, core.decided_slots(granted), counted, part.first_unit);
    return head.units;
}

std::string amount_texts(const core::Core& core, const core::Decision& told) {
    std::string texts;
    size_t at = 0;
    const auto amounts = core.decided_amounts(told);
    for (const core::Resource& resource : core.resources(told.pool))
        texts += resource.name + "=" + std::to_string(amounts[at++]) + '\0';
    return texts;
}

uint16_t write_amounts(const core::Core& core,
                       const core::Decision& assigned,
                       Session& session,
                       uint64_t place) {
    const std::string texts = amount_texts(core, assigned);
    std::memcpy(session.payload + place, texts.data(), texts.size());
    return static_cast<uint16_t>(texts.size());
}

void write_answer(Session& session,
                  const TagRoom& room,
                  uint32_t index,
                  std::span<const uint8_t> answer,
                  bool last) {
    const uint32_t most = shm::grant_answer_room(room.stride, room.answer_place);
    const uint32_t size = std::min(static_cast<uint32_t>(answer.size()), most);
    std::byte* unit = grant_region(session, room, index);
    if (size != 0) {
        std::memcpy(unit + room.answer_place + (last ? most : 0), answer.data(), size);
    }
    auto* slot = reinterpret_cast<shm::GrantSlot*>(unit);
    std::atomic_ref<uint32_t>(last ? slot->done_size : slot->answer_size)
        .store(size, std::memory_order_release);  // pairs with the library's look at an answer
}

}  // namespace dibs
