// broker/answer.cpp -- decisions become completions, event words and room bytes.
// SPDX-License-Identifier: Apache-2.0
#include "broker/answer.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "shm/doorbell.hpp"
#include "shm/operation.hpp"

namespace dibs {

using core::Decision;
using core::DecisionKind;
using shm::Completion;
using shm::CompletionKind;

namespace {

uint32_t row_of(uint64_t id) {
    return static_cast<uint32_t>(id);
}

// The region of the unit at `index` in a grant room.
std::byte* region(Session& session, const TagRoom& room, uint32_t index) {
    return session.payload + size_t{room.first} * shm::kLineSize + sizeof(shm::GrantHead) +
           size_t{index} * room.stride;
}

shm::GrantSlot* grant_slot(Session& session, const TagRoom& room, uint32_t index) {
    return reinterpret_cast<shm::GrantSlot*>(region(session, room, index));
}

}  // namespace

Answers::Answers(core::Core& core,
                 Sessions& sessions,
                 Operations& operations,
                 Publisher& publisher,
                 const Quotas& quotas)
    : core_(core),
      sessions_(sessions),
      operations_(operations),
      publisher_(publisher),
      quotas_(quotas) {}

// Another user is told the holder's account and age, and no more.
void Answers::name_holder(const Session* to, const Decision& decision, Completion& entry) {
    if (decision.holder_uid == shm::kNoRow || to == nullptr) return;
    shm::Holder holder{
        decision.holder_uid, decision.holder_pid, decision.holder_age_ns, decision.holder_claim};
    if (!to->admin && to->peer.uid != holder.uid) {
        if (!quotas_.own_account(holder.uid)) holder.uid = shm::kHiddenUid;
        holder.pid = 0;
        holder.claim = shm::kHiddenClaim;
    }
    shm::set_holder(entry, holder);
}

void Answers::stage() {
    kills_ = false;
    for (const OwnResult& own : operations_.own_results()) {
        Completion entry;
        entry.kind = CompletionKind::kResult;
        entry.user_data = own.user_data;
        entry.reason = own.reason;
        complete(own.session, entry);
    }
    const auto decisions = core_.decisions();
    const auto silenced = operations_.silenced();
    size_t silent = 0;
    for (size_t i = 0; i < decisions.size(); ++i) {
        if (silent < silenced.size() && silenced[silent] == i) {
            ++silent;
            continue;
        }
        stage_decision(decisions[i]);
    }
    operations_.collect_gone();
    for (const Session* session : sessions_.in_turn()) {
        if (session->ending) continue;
        core_.set_cursors(session->row, session->up.head(), session->completion_tail);
    }
}

void Answers::stage_decision(const Decision& decision) {
    switch (decision.kind) {
        case DecisionKind::kResult:
        case DecisionKind::kAnnounced:
            return result(decision);
        case DecisionKind::kAssign:
            return assign(decision);
        case DecisionKind::kRevoke:
            return revoke(decision);
        case DecisionKind::kAnswer:
            return worker_answer(decision);
        case DecisionKind::kGrant:
            return grant(decision);
        case DecisionKind::kEnd:
            return claim_end(decision);
        case DecisionKind::kLeaseGrace:
            return lease_event(decision, shm::LeaseEvent::kGrace);
        case DecisionKind::kLeaseEnd:
            return lease_event(decision, shm::LeaseEvent::kEnded);
        case DecisionKind::kAdopted:
            return adopt(decision, (&decision)[1]);  // the core says next who had it
        case DecisionKind::kKill:
            kills_ = true;
            return;
        case DecisionKind::kSlotGone:
        case DecisionKind::kDemand:
        case DecisionKind::kDrained:
        case DecisionKind::kPromote:
        case DecisionKind::kDemote:
        case DecisionKind::kPreempt:
        case DecisionKind::kRefund:
        case DecisionKind::kPulled:
            return;
    }
}

void Answers::result(const Decision& decision) {
    Completion entry;
    const bool slot = decision.kind == DecisionKind::kAnnounced;
    entry.kind = slot ? CompletionKind::kSlot : CompletionKind::kResult;
    entry.user_data = decision.user_data;
    entry.reason = decision.reason;
    entry.id = decision.id;
    entry.fence = slot ? decision.round : decision.fence;
    entry.value = slot ? decision.slot_number : decision.value;
    name_holder(sessions_.at(decision.session), decision, entry);
    complete(sessions_.at(decision.session), entry);
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
    if (claim.first_slot == row_of(decision.id)) forget_answers(claim);
    if (claim.payload_size == 0 || claim.payload_size > room.lines * shm::kLineSize) return 0;
    core_.copy_chain(claim.payload,
                     claim.payload_size,
                     room.session->payload + size_t{room.first} * shm::kLineSize);
    return claim.payload_size;
}

// A claim that is assigned (again): answers of an earlier assignment are not its own.
void Answers::forget_answers(const shm::ClaimRow& claim) {
    Session* holder = sessions_.at(claim.session);
    if (holder == nullptr || claim.tag >= holder->tags.size()) return;
    const TagRoom& room = holder->tags[claim.tag];
    if (room.first == shm::kNoRow) return;
    for (uint32_t i = 0; i < claim.units; ++i)
        grant_slot(*holder, room, i)->answer_size = 0;
}

void Answers::assign(const Decision& decision) {
    Session* session = sessions_.at(decision.session);
    const SlotRoom& room = operations_.slot_room(row_of(decision.id));
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
    complete(session, entry);
}

void Answers::revoke(const Decision& decision) {
    Completion entry;
    entry.kind = CompletionKind::kRevoke;
    entry.user_data = decision.user_data;
    entry.id = decision.id;
    entry.fence = decision.round;
    entry.value = decision.slot_number;
    complete(sessions_.at(decision.session), entry);
}

// The worker's answer goes into its unit's region of the holder's room; the size after the bytes.
void Answers::worker_answer(const Decision& decision) {
    Session* session = sessions_.at(decision.session);
    if (session == nullptr || decision.tag >= session->tags.size()) return;
    const TagRoom& room = session->tags[decision.tag];
    // The claim may have been cancelled since, and its tag be another's: room and all.
    if (room.first == shm::kNoRow || room.first != decision.room) return;
    const uint32_t size =
        std::min(static_cast<uint32_t>(decision.answer.size()), room.stride - room.answer_place);
    std::byte* unit = region(*session, room, decision.slots_begin);
    if (size != 0) std::memcpy(unit + room.answer_place, decision.answer.data(), size);
    std::atomic_ref<uint32_t>(reinterpret_cast<shm::GrantSlot*>(unit)->answer_size)
        .store(size, std::memory_order_release);  // pairs with the library's look at an answer
}

// The room that the claim was given. Its tag may not have it any more: a lease that its holder ends
// in the turn of its grant has given room and tag back. The lines are the lease's until the commit.
TagRoom Answers::room_given_back(const Decision& decision) const {
    const shm::PoolRow& pool = core_.pool(decision.pool);
    return {.first = decision.room,
            .stride = grant_stride(pool),
            .answer_place = grant_answer_place(pool),
            .ingested_ns = core_.now()};
}

// Head and slots of a grant, but for the workers' answers, which are there already.
void Answers::write_grant(Session& session, const TagRoom& room, const Decision& decision) {
    const bool counted = core_.pool(decision.pool).kind == shm::PoolKind::kCounted;
    const auto slots = core_.decided_slots(decision);
    std::byte* base = session.payload + size_t{room.first} * shm::kLineSize;
    *reinterpret_cast<shm::GrantHead*>(base) = {
        static_cast<uint32_t>(slots.size()), room.stride, room.answer_place, 0};
    for (uint32_t i = 0; i < slots.size(); ++i) {
        const shm::SlotRow& slot = core_.slot(slots[i]);
        shm::GrantSlot* out = grant_slot(session, room, i);
        // The row's second line is only looked at where there may be attributes.
        const uint32_t fit = room.answer_place - static_cast<uint32_t>(sizeof(shm::GrantSlot));
        out->number = slot.number;
        out->attributes_size =
            fit != 0 && slot.attributes_size <= fit ? slot.attributes_size : uint32_t{0};
        if (counted) out->answer_size = 0;
        if (out->attributes_size != 0) {
            core_.copy_chain(slot.attributes,
                             out->attributes_size,
                             reinterpret_cast<std::byte*>(out) + sizeof(shm::GrantSlot));
        }
    }
    // The word of the tag's last lease must not be taken for this one's.
    if (session.events[decision.tag].load(std::memory_order_relaxed) != 0) {
        stage_event(session, decision.tag, 0);
    }
}

void Answers::tell_lease(Session* session, const Decision& decision, Completion& entry) {
    entry.user_data = decision.user_data;
    entry.units = decision.units;
    entry.tag = decision.tag;
    entry.id = decision.id;
    entry.fence = decision.fence;
    entry.value = decision.value;
    entry.claim = decision.claim;
    entry.data = decision.room * static_cast<uint32_t>(shm::kLineSize);
    complete(session, entry);
    if (session->tags[decision.tag].first != decision.room) {
        session->keep_until_read(decision.room, session->completion_tail);
    }
}

void Answers::grant(const Decision& decision) {
    Session* session = sessions_.at(decision.session);
    if (session == nullptr) return;
    const TagRoom& of_tag = session->tags[decision.tag];
    const bool given_back = of_tag.first != decision.room;
    const TagRoom kept = given_back ? room_given_back(decision) : TagRoom{};
    const TagRoom& room = given_back ? kept : of_tag;
    write_grant(*session, room, decision);
    publisher_.granted(decision.pool, core_.now() - room.ingested_ns);
    Completion entry;
    entry.kind = CompletionKind::kClaim;
    entry.outcome = shm::Outcome::kGranted;
    tell_lease(session, decision, entry);
}

// What was granted to another session, whose room is still as it was; `left` tells it so.
void Answers::adopt(const Decision& decision, const Decision& left) {
    Session* session = sessions_.at(decision.session);
    if (session == nullptr) return;
    const TagRoom& of_tag = session->tags[decision.tag];
    const TagRoom room = of_tag.first == decision.room ? of_tag : room_given_back(decision);
    write_grant(*session, room, decision);
    Session* giver = sessions_.at(left.session);
    const bool known = giver != nullptr && left.tag < giver->tags.size() &&
                       giver->tags[left.tag].first == left.room;
    for (uint32_t i = 0; i < decision.slots_count; ++i) {
        const uint32_t size =
            known ? grant_slot(*giver, giver->tags[left.tag], i)->answer_size : uint32_t{0};
        grant_slot(*session, room, i)->answer_size = size;
        if (size == 0) continue;
        std::memcpy(region(*session, room, i) + room.answer_place,
                    region(*giver, giver->tags[left.tag], i) + room.answer_place,
                    size);
    }
    Completion entry;
    entry.kind = CompletionKind::kResult;
    tell_lease(session, decision, entry);
}

void Answers::claim_end(const Decision& decision) {
    Session* session = sessions_.at(decision.session);
    if (session == nullptr) return;
    // Nobody reads the room of a claim that was not granted. One that was refused because its tag
    // is taken has none, and the tag's belongs to another.
    if (decision.room != shm::kNoRow && decision.tag < session->tags.size() &&
        session->tags[decision.tag].first == decision.room) {
        session->free_tag(decision.tag, 0);
    }
    Completion entry;
    entry.kind = CompletionKind::kClaim;
    entry.outcome = decision.outcome;
    entry.reason = decision.reason;
    entry.user_data = decision.user_data;
    entry.units = decision.units;
    entry.tag = decision.tag;
    entry.id = decision.id;
    entry.value = decision.value;
    entry.claim = decision.claim;
    name_holder(session, decision, entry);
    complete(session, entry);
}

void Answers::lease_event(const Decision& decision, uint8_t event) {
    Session* session = sessions_.at(decision.session);
    if (session == nullptr || session->ending || decision.tag >= session->tags.size()) return;
    const auto generation = static_cast<uint32_t>(decision.id >> 32);
    stage_event(*session, decision.tag, shm::event_word(event, decision.reason, generation));
    if (event != shm::LeaseEvent::kEnded) return;
    TagRoom& room = session->tags[decision.tag];
    if (room.first != decision.room) return;
    room.ended = room.first != shm::kNoRow;
    room.unread = session->completion_tail;
}

void Answers::stage_event(Session& session, uint16_t tag, uint64_t word) {
    stage_store_.kind = shm::LogStoreKind::kLeaseEvent;
    stage_store_.session = session.row;
    stage_store_.generation = session.generation;
    stage_store_.position = tag;
    std::memcpy(stage_store_.entry, &word, sizeof(word));
    core_.stage_store(stage_store_);
    sessions_.in_turn(&session);
}

void Answers::complete(Session* session, Completion& entry) {
    if (session == nullptr || session->ending || session->draining) return;
    if (session->completion_room() == 0 &&
        (!session->refresh_released() || session->completion_room() == 0)) {
        return sessions_.end(session, shm::Reason::kLimit);
    }
    entry.sequence = session->completion_tail + 1;
    stage_store_.kind = shm::LogStoreKind::kCompletion;
    stage_store_.session = session->row;
    stage_store_.generation = session->generation;
    stage_store_.position = session->completion_tail;
    std::memcpy(stage_store_.entry, &entry, sizeof(entry));
    core_.stage_store(stage_store_);
    ++session->completion_tail;
    sessions_.in_turn(session);
}

void Answers::store_staged() {
    for (const shm::LogStore& store : core_.staged_stores()) {
        Session* session = sessions_.at(store.session);
        if (session == nullptr || session->generation != store.generation) continue;
        if (store.kind == shm::LogStoreKind::kCompletion) {
            shm::store_line(session->completions,
                            session->sizes.completion_entries,
                            store.position,
                            store.entry);
        } else {
            uint64_t word = 0;
            std::memcpy(&word, store.entry, sizeof(word));
            shm::store_event(session->events, static_cast<uint32_t>(store.position), word);
            session->events_changed = true;
        }
    }
}

void Answers::store() {
    store_staged();
    for (Session* session : sessions_.in_turn()) {
        session->in_turn = false;
        publish(*session);
    }
    sessions_.in_turn().clear();
}

// Each store is idempotent: nothing has been told to these sessions since.
void Answers::repeat() {
    if (core_.stores_owed()) store_staged();
    for (Session* session : sessions_.all()) {
        shm::commit_submissions(*session->down, session->consumed);
        session->events_changed = true;  // the words may have been stored and not counted
        publish(*session);
        shm::wake_client(*session->down);
        (void)send(session->event_socket.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

void Answers::publish(Session& session) {
    const uint64_t head = session.up.head();
    if (head != session.consumed) {
        session.consumed = head;
        shm::commit_submissions(*session.down, head);
    }
    if (session.events_changed) {
        session.events_changed = false;
        shm::count_event(*session.down);
    }
    const uint32_t sleeps = session.up.announce(*session.down, session.completion_tail);
    if (sleeps == shm::ClientSleep::kFutex) shm::wake_client(*session.down);
    if (sleeps == shm::ClientSleep::kPoll) {
        // A full socket has woken its reader already.
        (void)send(session.event_socket.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    session.settle_rooms();
}

void Answers::farewell(Session& session) {
    session.down->end_reason.store(static_cast<int32_t>(session.end_reason),
                                   std::memory_order_relaxed);
    // Pairs with the library's look at the state: makes the reason visible.
    session.down->session_state.store(static_cast<uint32_t>(shm::SessionState::kDying),
                                      std::memory_order_release);
    shm::wake_client(*session.down);
    (void)send(session.event_socket.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace dibs
