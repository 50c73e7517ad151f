// broker/grant_room.cpp -- a grant's head and slots.
// SPDX-License-Identifier: Apache-2.0
#include "broker/grant_room.hpp"

namespace dibs {

void write_grant(const core::Core& core,
                 Session& session,
                 const TagRoom& room,
                 std::span<const uint32_t> slots,
                 bool counted) {
    std::byte* base = session.payload + size_t{room.first} * shm::kLineSize;
    *reinterpret_cast<shm::GrantHead*>(base) = {
        static_cast<uint32_t>(slots.size()), room.stride, room.answer_place, 0};
    for (uint32_t i = 0; i < slots.size(); ++i) {
        const shm::SlotRow& slot = core.slot(slots[i]);
        shm::GrantSlot* out = grant_slot(session, room, i);
        // The row's second line is only looked at where there may be attributes.
        const uint32_t fit = room.answer_place - static_cast<uint32_t>(sizeof(shm::GrantSlot));
        out->number = slot.number;
        out->attributes_size =
            fit != 0 && slot.attributes_size <= fit ? slot.attributes_size : uint32_t{0};
        if (counted) out->answer_size = 0;
        if (out->attributes_size != 0) {
            core.copy_chain(slot.attributes,
                            out->attributes_size,
                            reinterpret_cast<std::byte*>(out) + sizeof(shm::GrantSlot));
        }
    }
}

}  // namespace dibs
