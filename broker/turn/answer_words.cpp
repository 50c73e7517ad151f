// broker/turn/answer_words.cpp -- tells workers of assignments, provisioners of orders.
// SPDX-License-Identifier: Apache-2.0
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "broker/core/look.hpp"
#include "broker/session/grant_room.hpp"
#include "broker/turn/answer.hpp"
#include "shm/operation.hpp"

namespace dibs {

using core::Decision;
using core::row_of;
using shm::Completion;
using shm::CompletionKind;

void Answers::assign(const Decision& decision) {
    Session* session = sessions_.at(decision.session);
    const SlotRoom& room = operations_.assigned_room(row_of(decision.id));
    if (session == nullptr || room.session != session) return;
    Completion entry;
    entry.kind = CompletionKind::kAssign;
    entry.user_data = decision.user_data;
    entry.id = decision.id;
    entry.fence = decision.round;
    entry.value = decision.slot_number;
    entry.claim = decision.claim;
    entry.data = room.first * static_cast<uint32_t>(shm::kLineSize);
    entry.holder = copy_payload_of(decision, room);
    const uint64_t behind = uint64_t{entry.data} + entry.holder;
    if (decision.resources_count != 0) entry.tag = write_amounts(core_, decision, *session, behind);
    if (decision.provision) {
        const core::DecidedSlot slot{row_of(decision.id), decision.slot_number};
        entry.value |= uint64_t{to_provision(decision.claim, std::span{&slot, 1})} << 32U;
    }
    complete(session, entry);
}

// Preferred labels that one of the slots lacks. Rare, so that the payload is read once more.
uint32_t Answers::to_provision(uint64_t number, std::span<const core::DecidedSlot> slots) {
    const uint32_t row = core_.find_claim(number);
    if (row == shm::kNoRow) return 0;
    const shm::ClaimRow& claim = core_.claim(row);
    payload_.resize(claim.payload_size);
    core_.copy_chain(
        claim.payload, claim.payload_size, reinterpret_cast<std::byte*>(payload_.data()));
    if (!reader_.read(payload_)) return 0;
    uint32_t bits = 0;
    for (const core::DecidedSlot& slot : slots)
        bits |= reader_.lacking(core_.slot_labels(slot.row));
    return bits;
}

// Tells a worker that its slot is revoked or will be.
void Answers::revoke(const Decision& decision) {
    const bool notice = decision.value != 0;
    Completion entry;
    entry.kind = notice ? CompletionKind::kNotice : CompletionKind::kRevoke;
    entry.user_data = decision.user_data;
    entry.id = decision.id;
    entry.fence = decision.round;
    entry.value = decision.slot_number;
    if (notice) {
        entry.value = decision.value - std::min(decision.value, core_.now());
        entry.claim = decision.claim;
        entry.data = decision.slot_number;
    }
    complete(sessions_.at(decision.session), entry);
}

// To a provisioner. The token is the row's, too, before the turn commits: so the next broker knows
// it.
void Answers::order(const Decision& decision) {
    Session* session = sessions_.at(decision.session);
    if (session == nullptr) return;
    Completion entry;
    entry.user_data = core::Look::type(core_, decision.type).tag;
    entry.id = decision.id;
    entry.value = decision.slot_number;
    entry.kind = CompletionKind::kStop;
    if (decision.kind == core::DecisionKind::kCreate) {
        entry.kind = CompletionKind::kCreate;
        core::OrderToken token{};
        // Never short of randomness for so few bytes once the host has booted.
        while (getrandom(token.data(), sizeof token, 0) != static_cast<ssize_t>(sizeof token)) {
        }
        core_.keep_token(decision.id, token, session->peer.uid);
        std::memcpy(&entry.fence, token.data(), sizeof entry.fence);
        std::memcpy(&entry.claim, token.data() + sizeof entry.fence, sizeof entry.claim);
        if (decision.resources_count != 0) return order_of_size(decision, *session, entry);
    }
    complete(session, entry);
}

// What its worker is to have lies in a room that is free again once the client has taken it in.
void Answers::order_of_size(const Decision& decision, Session& session, Completion& entry) {
    const std::string texts = amount_texts(core_, decision);
    const uint32_t lines = room_lines(texts.size());
    const uint32_t first = session.take_room(lines);
    if (first == shm::kNoRow) return sessions_.end(&session, shm::Reason::kNoRoom);
    entry.data = first * static_cast<uint32_t>(shm::kLineSize);
    entry.holder = static_cast<uint32_t>(texts.size());
    entry.value |= decision.value << 32U;
    std::memcpy(session.payload + entry.data, texts.data(), texts.size());
    complete(&session, entry);
    session.free_room(first, lines, session.completion_tail);
}

}  // namespace dibs
