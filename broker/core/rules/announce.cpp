// broker/core/rules/announce.cpp -- adds slots that workers announce, by name and idempotently.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace SlotFlag = shm::SlotFlag;

namespace {

std::span<const uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

bool lacks_label(const shm::PoolRow& pool, std::span<const std::string_view> labels) {
    const std::string_view required{pool.required_label, pool.required_label_size};
    return !required.empty() && std::find(labels.begin(), labels.end(), required) == labels.end();
}

}  // namespace

uint64_t Workers::name_hash(uint32_t pool, std::string_view name) const {
    return hash_bytes(name.data(), name.size(), hash_seed() ^ pool);
}

uint32_t Workers::find_name(uint32_t pool, std::string_view name) const {
    if (name.empty()) return kNoRow;
    return slots().names.find(name_hash(pool, name), [&](uint32_t row) {
        const shm::SlotRow& slot = state.slots[row];
        return slot.pool == pool && std::string_view{slot.name, slot.name_size} == name;
    });
}

Reason Workers::announce_refusal(const Announce& command, uint32_t existing, uint32_t order) const {
    const shm::PoolRow& pool = state.pools[command.pool];
    if (pool.kind == shm::PoolKind::kCounted || dispatch().is_dispatched(command.pool)) {
        return Reason::kState;
    }
    if (command.name.size() > shm::kNameMax) return Reason::kMalformed;
    if (existing != kNoRow &&
        (state.slots[existing].session != command.session || order != kNoRow)) {
        return Reason::kNameInUse;  // an order's worker is another one
    }
    if (order != kNoRow && !provisioning().has_promised(order, command.labels)) {
        return Reason::kState;
    }
    if (command.attributes.size() > pool.attributes_max) return Reason::kPayload;
    if (const Reason reason = vectors().announce_refusal(command, existing);
        reason != Reason::kOk) {
        return reason;
    }
    if (!command.type.empty() && order == kNoRow &&
        provisioning().find_type(command.pool, command.type) == kNoRow) {
        return Reason::kNotFound;
    }
    if (existing == kNoRow && order == kNoRow && pools().slot_rows_left(kNoRow) == 0)
        return Reason::kTablesFull;
    return arena().has_room(command.attributes.size()) ? Reason::kOk : Reason::kArenaFull;
}

void Workers::apply(const Announce& command) {
    const auto refuse = [&](Reason reason) {
        turn().result(command.session, command.user_data, reason);
    };
    if (command.refusal != Reason::kOk) return refuse(command.refusal);
    if (!pools().pool_lives(command.pool)) return refuse(Reason::kUnknownPool);
    matcher().news_of(command.pool);
    const uint32_t existing = find_name(command.pool, command.name);
    const uint32_t order = provisioning().open_order(command.order, command.pool);
    Reason reason = announce_refusal(command, existing, order);
    if (reason == Reason::kOk) reason = matcher().slot_labels_come(command);
    if (reason != Reason::kOk) return refuse(reason);
    const bool again = existing != kNoRow;
    const uint32_t row = again             ? existing
                         : order != kNoRow ? order
                                           : slots().make_slot(command.pool);
    if (!again) {
        shm::SlotRow& slot = edit().row(state.slots[row], 1U << 1U | 1U << 3U);
        put(slot.session, command.session);
        put(slot.room, command.room);
        command.name.copy(slot.name, sizeof(slot.name));
        stored();
        put(slot.name_size, command.name.size());
        if (!command.name.empty()) slots().names.insert(name_hash(command.pool, command.name), row);
        sessions().session_slots.push_back(command.session, row);
        shm::SessionRow& session = edit().row(state.sessions[command.session], 1);
        put(session.slots, session.slots + 1);
        if (order != kNoRow) {
            put(slot.order, shm::OrderState::kAnnounced);
            vectors().order_comes(row);
            put(slot.stop_told, 0);
            put(edit().row(slot, 1U << 2U).announced_ns, turn().now_ns);
        }
        slots().move_slot(row, SlotState::kRecovering);
    }
    fill_announced(row, command);
    const shm::SlotRow& slot = state.slots[row];
    Decision& told = turn().decide_that(DecisionKind::kAnnounced);
    told.session = command.session;
    told.user_data = command.user_data;
    told.pool = command.pool;
    told.id = row_id(slot.head.generation, row);
    told.round = slot.round;
    told.slot_number = slot.number;
    told.room = slot.room;
    told.value = again ? 1 : 0;
    if (again && leave_unfit_claim(row)) return;
    if (again) readmit(row);
    const SlotState state_now = state.slots[row].state;
    if (command.ready && !being_killed_for(state.slots[row]) &&
        (state_now == SlotState::kRecovering || state_now == SlotState::kUnknown)) {
        slots().make_idle(row);
    }
}

// What an announcement brings and a repeated one replaces.
void Workers::fill_announced(uint32_t row, const Announce& command) {
    shm::SlotRow& slot = edit().row(state.slots[row], 1U << 1U);
    assert(slot.session == command.session && slot.pool == command.pool);
    const uint32_t chain = arena().store(bytes_of(command.attributes));
    assert(command.attributes.empty() || chain != kNoRow);
    free_rows().drop_arena(slot.session, slot.attributes_size);
    free_rows().hold_arena(slot.session, command.attributes.size());
    arena().free(slot.attributes, slot.attributes_size);
    put(slot.attributes, chain);
    put(slot.attributes_size, command.attributes.size());
    put(slot.worker_tag, command.worker_tag);
    if (!command.type.empty() && slot.order == shm::OrderState::kNone) {
        provisioning().change_type(row, provisioning().find_type(command.pool, command.type));
    }
    uint32_t flags = slot.flags & ~uint32_t{SlotFlag::kProtected};
    if (command.is_protected || is_withheld(slot)) flags |= SlotFlag::kProtected;
    matcher().slot_changes(row, [&] {
        matcher().take_labels(row);
        put(slot.flags, flags);
        qualify(row, command.labels);
    });
    vectors().fill_announced(row, command);
}

// A slot that is reserved for a claim has lost a label that this one must have: nothing is granted
// to it. False: it fits, or is not reserved for any.
bool Workers::leave_unfit_claim(uint32_t row) {
    const shm::SlotRow& slot = state.slots[row];
    const bool reserved = slot.state == SlotState::kReserved && slot.holder != kNoRow;
    if (!reserved || matcher().could_use(slot.holder, row)) return false;
    const uint32_t claim = slot.holder;
    assert(state.claims[claim].pool == slot.pool);
    const uint32_t first = claims().unreserve(claim);
    claims().wait_again(claim);
    slots().give_back_chain(first, false, false, kNoRow);
    return true;
}

// Whether it has its pool's required label.
void Workers::qualify(uint32_t row, std::span<const std::string_view> labels) {
    shm::SlotRow& slot = edit().row(state.slots[row], 1);
    uint32_t flags = slot.flags & ~uint32_t{SlotFlag::kUnqualified};
    if (lacks_label(state.pools[slot.pool], labels)) flags |= SlotFlag::kUnqualified;
    put(slot.flags, flags);
}

}  // namespace dibs::core
