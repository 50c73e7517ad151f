// broker/turn/worker_operations.cpp -- translates what workers and provisioners submit into
// commands of the core.
//
// An order is 128 random bits to whoever it was not sent to: the worker that is made for it hands
// them back when it is announced, by a session of the provisioner's user. They are used once, and
// void with the order. A wrong token is no reason to refuse a worker: it is an ordinary one.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "broker/core/look.hpp"
#include "broker/text/log.hpp"
#include "broker/turn/operations.hpp"
#include "shm/operation.hpp"

namespace dibs {

using shm::Op;
using shm::Reason;
namespace OpFlag = shm::OpFlag;

namespace {

std::string_view text_of(std::span<const uint8_t> payload) {
    return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

}  // namespace

void Operations::announce(Session& session,
                          const shm::Submission& entry,
                          std::span<const uint8_t> payload) {
    collect_gone();
    Announcement announcement;
    core::Announce command;
    command.session = session.row;
    command.pool = entry.pool;
    command.worker_tag = entry.id;
    command.user_data = entry.user_data;
    command.is_protected = (entry.flags & OpFlag::kOn) != 0;
    command.ready = (entry.flags & OpFlag::kThenReady) != 0;
    uint32_t lines = 0;
    command.refusal = quotas_.announce(session, entry.pool);
    if (command.refusal == Reason::kOk && !announcements_.read(payload, announcement)) {
        command.refusal = Reason::kPayload;
    }
    if (command.refusal == Reason::kOk) {
        command.refusal = quotas_.bring(
            session, entry.pool, announcement.attributes.size(), announcement.labels());
    }
    if (command.refusal == Reason::kOk && entry.pool < core_.pools()) {
        command.name = announcement.name;
        command.labels = announcement.labels();
        command.attributes = announcement.attributes;
        command.resources = announcement.resources();
        command.parts = announcement.parts;
        command.order = order_of(session, entry);
        lines = slot_room_lines(core_.pool(entry.pool));
        const uint32_t credit = session.sizes.completion_entries - session.sizes.submission_entries;
        const uint64_t slots = session.slots + uint64_t{command.parts} + 1;
        if (shm::kCompletionsPerSlot * slots + words_of_roles(session) +
                words_of_applications(session) <=
            credit)
            command.room = session.take_room(lines);
        if (command.room == shm::kNoRow) command.refusal = Reason::kNoRoom;
    }
    const size_t first = core_.decisions().size();
    core_.apply(command);
    const auto decisions = core_.decisions();
    const bool announced =
        decisions.size() > first && decisions[first].kind == core::DecisionKind::kAnnounced;
    if (!announced) {
        if (command.room != shm::kNoRow) session.free_room(command.room, lines, 0);
        return;
    }
    SlotRoom& room = room_of_slot(row_of(decisions[first].id));
    if (room.session == nullptr) {
        room = {&session, command.room, lines, 0};
        ++session.slots;
    } else {  // announced again: the slot keeps the room that it has
        session.free_room(command.room, lines, 0);
    }
    // Parts that are there keep their credit, also where there may be fewer from now on.
    const uint32_t parts = std::max(command.parts, core_.slot(row_of(decisions[first].id)).parts);
    session.slots += parts - room.parts;
    room.parts = parts;
    if ((entry.flags & OpFlag::kQuiet) != 0) silenced_.push_back(static_cast<uint32_t>(first));
}

// The lease of a slot that its worker is about to end.
void Operations::want_lease_of(const Session& session, uint64_t slot_id) {
    const uint32_t row = row_of(slot_id);
    if (row >= core_.slots_max()) return;
    const shm::SlotRow& slot = core_.slot(row);
    if (slot.state != shm::SlotState::kLeased || slot.session != session.row) return;
    if (core::row_id(slot.head.generation, row) == slot_id) words_.want(slot.holder);
}

void Operations::worker_word(Session& session,
                             const shm::Submission& entry,
                             std::span<const uint8_t> payload) {
    using Kind = core::WorkerWord::Kind;
    if (entry.fence > std::numeric_limits<uint32_t>::max()) {
        return own_result(session, entry, Reason::kMalformed);
    }
    core::WorkerWord word;
    word.session = session.row;
    word.slot = entry.id;
    word.round = static_cast<uint32_t>(entry.fence);
    word.user_data = entry.user_data;
    word.answer = payload;
    word.then_ready = (entry.flags & OpFlag::kThenReady) != 0;
    word.try_again = (entry.flags & OpFlag::kTryAgain) != 0;
    switch (entry.op) {
        case Op::kReady:
            word.kind = Kind::kReady;
            break;
        case Op::kConfirm:
            word.kind = Kind::kConfirm;
            break;
        case Op::kRefuse:
            word.kind = Kind::kRefuse;
            word.code = static_cast<int64_t>(shm::key_word(entry));
            break;
        case Op::kDone:
            word.kind = Kind::kDone;
            break;
        case Op::kWithdraw:
            word.kind = Kind::kWithdraw;
            break;
        default:
            word.kind = (entry.flags & OpFlag::kOn) != 0 ? Kind::kProtect : Kind::kUnprotect;
    }
    const bool may_end_lease =
        entry.op == Op::kDone || entry.op == Op::kReady || entry.op == Op::kWithdraw;
    if (may_end_lease) want_lease_of(session, entry.id);
    const size_t first = core_.decisions().size();
    core_.apply(word);
    after(entry, first);
}

void Operations::collect_gone() {
    const auto decisions = core_.decisions();
    for (; gone_cursor_ < decisions.size(); ++gone_cursor_) {
        const core::Decision& decision = decisions[gone_cursor_];
        if (decision.kind != core::DecisionKind::kSlotGone) continue;
        if (slot_room(row_of(decision.id)).session == nullptr) continue;
        SlotRoom& room = room_of_slot(row_of(decision.id));
        // An assignment that has not been read yet may still be looked at.
        room.session->free_room(room.first, room.lines, room.session->completion_tail);
        room.session->slots -= 1 + room.parts;
        room = SlotRoom{};
    }
}

// Never more than are reserved.
SlotRoom& Operations::room_of_slot(uint32_t slot) {
    if (slot >= slot_rooms_.size()) slot_rooms_.resize(size_t{slot} + 1);
    return slot_rooms_[slot];
}

void Operations::forget(const Session& session) {
    for (uint32_t slot = core_.next_slot_of(session.row); slot != shm::kNoRow;
         slot = core_.next_slot_of(session.row, slot)) {
        if (slot_room(slot).session == &session) room_of_slot(slot) = SlotRoom{};
    }
}

void Operations::provide(Session& session,
                         const shm::Submission& entry,
                         std::span<const uint8_t> payload) {
    if (payload.empty()) return own_result(session, entry, Reason::kMalformed);
    const Reason refusal = quotas_.provide(session, entry.pool);
    if (refusal != Reason::kOk) return own_result(session, entry, refusal);
    const bool is_on = (entry.flags & shm::OpFlag::kOn) != 0;
    const bool has_it =
        entry.pool < core_.pools() && has_role(session, entry.pool, text_of(payload));
    if (is_on && !has_it && entry.pool < core_.pools()) {
        const uint64_t credit = session.sizes.completion_entries - session.sizes.submission_entries;
        const uint64_t words =
            words_of_roles(session) + words_of_role(entry.pool) + words_of_applications(session);
        if (words + shm::kCompletionsPerSlot * uint64_t{session.slots} > credit) {
            return own_result(session, entry, Reason::kNoRoom);
        }
    }
    core::Provide command;
    command.session = session.row;
    command.pool = entry.pool;
    command.type = text_of(payload);
    command.tag = entry.tag;
    command.on = is_on;
    command.user_data = entry.user_data;
    const size_t first = core_.decisions().size();
    core_.apply(command);
    after(entry, first);
}

bool Operations::has_role(const Session& session, uint32_t pool, std::string_view name) const {
    const uint32_t type = core::Look::find_type(core_, pool, name);
    return type != shm::kNoRow && core::Look::type(core_, type).session == session.row;
}

// It may have as many words unread as there are workers to make and to stop.
uint64_t Operations::words_of_role(uint32_t pool) const {
    return uint64_t{2} * core::Look::elastic(core_, pool).workers_max;
}

uint64_t Operations::words_of_roles(const Session& session) const {
    uint64_t words = 0;
    const uint32_t rows = core_.head().table[static_cast<size_t>(shm::Table::kTypes)].rows;
    for (uint32_t row = 0; row < rows; ++row) {
        const shm::TypeRow& type = core::Look::type(core_, row);
        if (type.state != 0 && type.session == session.row) words += words_of_role(type.pool);
    }
    return words;
}

void Operations::provisioned(Session& session,
                             const shm::Submission& entry,
                             std::span<const uint8_t> payload) {
    using Answer = core::Provisioned::Answer;
    using Scope = core::Provisioned::Scope;
    if (entry.units > static_cast<uint16_t>(Answer::kFailed) ||
        entry.tag > static_cast<uint16_t>(Scope::kType)) {
        return own_result(session, entry, Reason::kMalformed);
    }
    core::Provisioned command;
    command.session = session.row;
    command.slot = entry.id;
    command.answer = static_cast<Answer>(entry.units);
    command.scope = static_cast<Scope>(entry.tag);
    command.quota_group = text_of(payload);
    command.user_data = entry.user_data;
    const size_t first = core_.decisions().size();
    core_.apply(command);
    after(entry, first);
}

// The order that an announced worker was made for.
core::SlotId Operations::order_of(Session& session, const shm::Submission& entry) const {
    core::OrderToken token{};
    static_assert(sizeof(token) == sizeof(entry.key));
    std::memcpy(token.data(), entry.key, sizeof(token));
    if (token == core::OrderToken{}) return {};
    if (core::Look::opens_order(core_, entry.fence, token, session.peer.uid)) return entry.fence;
    if (std::exchange(session.false_order, true)) return {};
    log::warning("a worker of user " + std::to_string(session.peer.uid) + ", process " +
                 std::to_string(session.peer.pid) +
                 ", names an order that is not there, or not its: it is an ordinary worker");
    return {};
}

}  // namespace dibs
