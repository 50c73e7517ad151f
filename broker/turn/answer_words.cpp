// broker/turn/answer_words.cpp -- tells workers of assignments, provisioners of orders, managers of
// their applications.
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

// The first of the claim's slots whose worker must be asked: other workers do not attach.
uint32_t Answers::first_asked(const shm::ClaimRow& claim) const {
    uint32_t slot = claim.first_slot;
    while (slot != shm::kNoRow && core_.slot(slot).session == shm::kNoRow)
        slot = core_.slot(slot).holder_next;
    return slot;
}

// The claim's payload goes from the arena into the slot's room. Returns its size.
uint32_t Answers::copy_payload_of(const Decision& decision, const SlotRoom& room) {
    const shm::SlotRow& slot = core_.slot(row_of(decision.id));
    // The same turn may already have taken the slot back: then a revoke follows.
    if (slot.state != shm::SlotState::kReserved || slot.round != decision.round ||
        slot.holder == shm::kNoRow) {
        return 0;
    }
    const shm::ClaimRow& claim = core_.claim(slot.holder);
    if (first_asked(claim) == row_of(decision.id)) forget_answers(claim);
    // Over several pools its first row has it.
    const bool several = (claim.flags & shm::ClaimFlag::kSeveral) != 0;
    const shm::ClaimRow& bringer = several ? core_.claim(claim.several_first) : claim;
    if (bringer.payload_size == 0 || bringer.payload_size > room.lines * shm::kLineSize) return 0;
    core_.copy_chain(bringer.payload,
                     bringer.payload_size,
                     room.session->payload + size_t{room.first} * shm::kLineSize);
    return bringer.payload_size;
}

// A claim that is assigned (again): answers of an earlier assignment are not its own.
void Answers::forget_answers(const shm::ClaimRow& claim) {
    Session* holder = sessions_.at(claim.session);
    if (holder == nullptr || claim.tag >= holder->tags.size()) return;
    const TagRoom& room = holder->tags[claim.tag];
    if (room.first == shm::kNoRow) return;
    const bool several = (claim.flags & shm::ClaimFlag::kSeveral) != 0;
    const uint32_t begin = several ? grant_part(*holder, room, claim.pool)->first_unit : 0;
    for (uint32_t i = 0; i < claim.units; ++i)
        grant_slot(*holder, room, begin + i)->answer_size = 0;
}

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

// To the application's manager: its state, and with it how many tasks have failed.
void Answers::application(const Decision& decision) {
    Completion entry;
    entry.kind = CompletionKind::kApplication;
    entry.reason = decision.reason;
    entry.id = decision.id;
    entry.value = decision.to_class;
    entry.claim = decision.from_class;
    const auto failed = std::find_if(failed_tasks_.begin(), failed_tasks_.end(), [&](auto& tasks) {
        return tasks.number == decision.id && tasks.session.number == decision.session.number;
    });
    if (failed != failed_tasks_.end()) {
        entry.data = failed->count;
        failed_tasks_.erase(failed);
    }
    complete(sessions_.at(decision.session), entry);
}

// Of those without a claim nobody else is told. What its manager has completed itself it knows.
void Answers::task(const Decision& decision) {
    const auto to = static_cast<shm::TaskState>(decision.to_class);
    if (to == shm::TaskState::kCompleted || decision.session.is_none()) return;
    for (FailedTasks& tasks : failed_tasks_) {
        if (tasks.number != decision.id || tasks.session.number != decision.session.number)
            continue;
        ++tasks.count;
        return;
    }
    failed_tasks_.push_back({decision.session, decision.id, 1});
}

// Those that no later state of their application has told of. While tasks are being ended over
// several turns more of them follow: their manager has room for one completion.
void Answers::tell_failed_tasks() {
    if (core_.cut()) return;
    for (const FailedTasks& tasks : failed_tasks_) {
        const uint32_t row = core::Look::find_application(core_, tasks.number);
        if (row == shm::kNoRow) continue;
        const shm::AppRow& app = core::Look::application(core_, row);
        if (app.manager != tasks.session.number) continue;  // it has gone, or the application
        Completion entry;
        entry.kind = CompletionKind::kApplication;
        entry.reason = app.reason == 0 ? shm::Reason::kOk : static_cast<shm::Reason>(app.reason);
        entry.id = tasks.number;
        entry.value = entry.claim = static_cast<uint64_t>(app.state);
        entry.data = tasks.count;
        complete(sessions_.at(tasks.session), entry);
    }
    failed_tasks_.clear();
}

}  // namespace dibs
