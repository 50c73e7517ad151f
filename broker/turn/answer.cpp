// broker/turn/answer.cpp -- turns decisions into completions, event words and room bytes.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/answer.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "broker/session/grant_room.hpp"
#include "broker/takeover/second_thread.hpp"
#include "shm/doorbell.hpp"
#include "shm/operation.hpp"

namespace dibs {

using core::Decision;
using core::DecisionKind;
using core::row_of;
using shm::Completion;
using shm::CompletionKind;

// Fewer sessions are woken sooner than a thread starts.
constexpr size_t kSessionsForTwo = 32;

Answers::Answers(core::Core& core,
                 Sessions& sessions,
                 Operations& operations,
                 Publisher& publisher,
                 const Quotas& quotas,
                 ReadBudget& read_budget)
    : core_(core),
      sessions_(sessions),
      operations_(operations),
      publisher_(publisher),
      quotas_(quotas),
      read_budget_(read_budget) {}

// A client of another user sees the holder's account and age, and no more.
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
    worded_.clear();
    for (const OwnResult& own : operations_.own_results()) {
        Completion entry;
        entry.kind = CompletionKind::kResult;
        entry.user_data = own.user_data;
        entry.reason = own.reason;
        complete(own.session, entry);
    }
    const auto decisions = core_.decisions();
    const auto silenced = operations_.silenced();
    auto ruled = operations_.ruled();
    size_t silent = 0;
    const auto revivals = core_.revivals();
    size_t revived = 0;
    for (size_t i = 0; i < decisions.size(); ++i) {
        while (revived < revivals.size() && revivals[revived].place <= i)
            revival(revivals[revived++]);
        if (silent < silenced.size() && silenced[silent] == i) {
            ++silent;
            continue;
        }
        while (!ruled.empty() && ruled.front().place < i)
            ruled = ruled.subspan(1);
        rule_ = !ruled.empty() && ruled.front().place == i ? ruled.front().rule : shm::Rule{};
        stage_decision(decisions[i]);
    }
    while (revived < revivals.size())
        revival(revivals[revived++]);
    tell_failed_tasks();
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
        case DecisionKind::kCreate:
        case DecisionKind::kStop:
            return order(decision);
        case DecisionKind::kAnswer:
            return worker_answer(decision);
        case DecisionKind::kGrant:
            return grant(decision);
        case DecisionKind::kEnd:
            return claim_end(decision);
        case DecisionKind::kLeaseGrace:
            return lease_grace(decision);
        case DecisionKind::kLeaseEnd:
            return lease_event(
                decision,
                decision.value != 0 ? shm::LeaseEvent::kRequeued : shm::LeaseEvent::kEnded);
        case DecisionKind::kAdopted:
            // What comes behind them names the previous holder.
            return adopt(decision, (&decision)[std::max(decision.round, 1U) - decision.part]);
        case DecisionKind::kKill:
            return void(kills_ = true);
        case DecisionKind::kApplication:
            return application(decision);
        case DecisionKind::kTask:
            return task(decision);
        case DecisionKind::kPlaceholder:
        case DecisionKind::kSlotGone:
        case DecisionKind::kDemand:
        case DecisionKind::kDrained:
        case DecisionKind::kPromote:
        case DecisionKind::kDemote:
        case DecisionKind::kPreempt:
        case DecisionKind::kRefund:
        case DecisionKind::kPulled:
        case DecisionKind::kLock:
        case DecisionKind::kUnlock:
        case DecisionKind::kStart:
        case DecisionKind::kKillProcess:
        case DecisionKind::kForget:
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
    const auto place = static_cast<size_t>(&decision - core_.decisions().data());
    for (const Operations::Adopted& adopted : operations_.adopted())
        if (adopted.place == place) entry.value = adopted.number;
    name_holder(sessions_.at(decision.session), decision, entry);
    complete(sessions_.at(decision.session), entry);
}

// The worker's answer goes into its unit's region of the holder's room.
void Answers::worker_answer(const Decision& decision) {
    Session* session = sessions_.at(decision.session);
    if (session == nullptr || decision.tag >= session->tags.size()) return;
    const TagRoom& room = session->tags[decision.tag];
    // The claim may have been cancelled since, and its tag be another's: room and all.
    if (room.first == shm::kNoRow || room.first != decision.room) return;
    const bool last = decision.reason == shm::Reason::kDone;
    uint32_t unit = decision.slots_begin;
    if (decision.part != 0) unit += grant_part(*session, room, decision.pool)->first_unit;
    write_answer(*session, room, unit, decision.answer, last);
}

// The room of the claim. Its tag may not have it any more: a lease that its holder ends in the turn
// of its grant has freed room and tag. The lines are the lease's until the commit.
TagRoom Answers::room_given_back(const Decision& decision) const {
    if (decision.round != 0) {  // over several pools
        TagRoom room = several_room(*sessions_.at(decision.session), decision.room);
        room.ingested_ns = core_.now();
        return room;
    }
    const shm::PoolRow& pool = core_.pool(decision.pool);
    return {.first = decision.room,
            .stride = grant_stride(pool),
            .answer_place = grant_answer_place(pool),
            .ingested_ns = core_.now()};
}

// Returns the units of all pools.
uint16_t Answers::write_grant(Session& session, const TagRoom& room, const Decision& decision) {
    uint16_t units = decision.units;
    if (decision.round == 0) {
        const bool counted = core_.pool(decision.pool).kind == shm::PoolKind::kCounted;
        dibs::write_grant(core_, session, room, core_.decided_slots(decision), counted);
    } else {
        units = write_part(core_, session, room, decision);
    }
    // The word of the tag's last lease must not be taken for this one's.
    if (has_word(session, decision.tag)) stage_event(session, decision.tag, 0);
    return units;
}

namespace {

uint64_t place_of(const Session& session, uint16_t tag) {
    return uint64_t{session.row} << 16 | tag;
}

}  // namespace

// A claim that waits again may be granted in the turn that has taken its lease: then the word is
// not stored yet.
bool Answers::has_word(const Session& session, uint16_t tag) const {
    return session.events[tag].load(std::memory_order_relaxed) != 0 ||
           std::find(worded_.begin(), worded_.end(), place_of(session, tag)) != worded_.end();
}

void Answers::tell_lease(Session* session, const Decision& decision, Completion& entry) {
    entry.user_data = decision.user_data;
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
    const core::TimeNs waited_ns = core_.now() - room.ingested_ns;
    const Path at_the_end = waited_ns == 0 ? Path::kAtOnce : Path::kQueued;
    publisher_.granted(decision.pool, decision.pledged ? Path::kFast : at_the_end, waited_ns);
    if (decision.pledged) return pledge_kept(session);
    Completion entry;
    entry.units = write_grant(*session, room, decision);
    if (decision.part != 0) return;  // the first one's completion tells of all
    entry.kind = CompletionKind::kClaim;
    entry.outcome = shm::Outcome::kGranted;
    if (decision.may_park) entry.reason = shm::Reason::kMayPark;
    if (decision.provision) {
        entry.holder = ~to_provision(decision.claim, core_.decided_slots(decision));
    }
    tell_lease(session, decision, entry);
}

// It has been published, and its completion is the log's first store.
void Answers::pledge_kept(Session* session) {
    stored_ = 1;
    ++session->completion_tail;
    sessions_.in_turn(session);
}

// A lease that was granted to another session, whose room is still as it was; `left` tells that
// session.
void Answers::adopt(const Decision& decision, const Decision& left) {
    Session* session = sessions_.at(decision.session);
    if (session == nullptr) return;
    const TagRoom& of_tag = session->tags[decision.tag];
    const TagRoom room = of_tag.first == decision.room ? of_tag : room_given_back(decision);
    Completion entry;
    entry.units = write_grant(*session, room, decision);
    const bool several = decision.round != 0;
    const uint32_t begin =
        several ? grant_part(*session, room, decision.pool)->first_unit : uint32_t{0};
    Session* giver = sessions_.at(left.session);
    const bool known = giver != nullptr && left.tag < giver->tags.size() &&
                       giver->tags[left.tag].first == left.room;
    for (uint32_t i = 0; i < decision.slots_count; ++i) {
        std::span<const uint8_t> answer;
        if (known) answer = first_answer(*giver, giver->tags[left.tag], begin + i);
        write_answer(*session, room, begin + i, answer, false);
    }
    if (decision.part != 0) return;
    entry.kind = CompletionKind::kResult;
    const bool by_word = (core_.lease(row_of(decision.id)).flags & shm::LeaseFlag::kByWord) != 0;
    if (by_word) entry.reason = shm::Reason::kByWord;
    tell_lease(session, decision, entry);
    tell_again(*session, decision);
}

// A session that adopts a lease under revocation is notified again.
void Answers::tell_again(Session& session, const Decision& adopted) {
    const shm::LeaseRow& lease = core_.lease(row_of(adopted.id));
    if (lease.state != shm::LeaseState::kRevoking || lease.fence != adopted.fence) return;
    const uint64_t left_ns = lease.grace_until_ns - std::min(lease.grace_until_ns, core_.now());
    store_left(&session, adopted.tag, adopted.room, left_ns);
    const uint32_t generation = core::generation_of(adopted.id);
    stage_event(session,
                adopted.tag,
                shm::event_word(shm::LeaseEvent::kRevoking, shm::Reason::kRevoked, generation));
}

void Answers::claim_end(const Decision& decision) {
    Session* session = sessions_.at(decision.session);
    if (session == nullptr) return;
    // The room of a claim that was not granted is not read. A claim refused because its tag is
    // taken has no room; the room of that tag belongs to another claim.
    if (decision.room != shm::kNoRow && decision.tag < session->tags.size() &&
        session->tags[decision.tag].first == decision.room) {
        session->free_tag(decision.tag, 0);
    }
    Completion entry;
    entry.kind = CompletionKind::kClaim;
    entry.outcome = decision.outcome;
    entry.reason = decision.reason;
    entry.user_data = decision.user_data;
    entry.units = static_cast<uint16_t>(decision.pool);
    entry.tag = decision.tag;
    entry.id = decision.id;
    if (decision.reason == shm::Reason::kUnavailable) {
        rule_ = {shm::RuleKey::kResources, static_cast<uint32_t>(decision.id)};
    }
    const bool by_rule = rule_.key != shm::RuleKey::kNone;
    entry.value = by_rule ? shm::packed(rule_) : decision.value;
    entry.claim = decision.claim;
    name_holder(session, decision, entry);
    complete(session, entry);
}

// How long it has goes into the head of its room, which its holder reads when it has seen the
// event. A turn that is taken back leaves a number there that no event announces.
void Answers::lease_grace(const Decision& decision) {
    const bool revoking = decision.reason == shm::Reason::kRevoked;
    const bool ends = decision.value != shm::kNever;
    const uint64_t left_ns = decision.value - std::min(decision.value, ends ? core_.now() : 0);
    store_left(sessions_.at(decision.session), decision.tag, decision.room, left_ns);
    lease_event(decision, revoking ? shm::LeaseEvent::kRevoking : shm::LeaseEvent::kGrace);
}

void Answers::store_left(Session* session, uint16_t tag, uint32_t room, uint64_t left_ns) {
    if (session == nullptr || tag >= session->tags.size()) return;
    if (room == shm::kNoRow || session->tags[tag].first != room) return;
    const uint64_t left_ms = std::min<uint64_t>(left_ns / 1'000'000, shm::kNoRow);
    std::byte* base = session->payload + size_t{room} * shm::kLineSize;
    // Made visible by the event word, which follows with the commit.
    std::atomic_ref<uint32_t>(reinterpret_cast<shm::GrantHead*>(base)->left_ms)
        .store(static_cast<uint32_t>(left_ms), std::memory_order_relaxed);
}

void Answers::lease_event(const Decision& decision, uint8_t event) {
    Session* session = sessions_.at(decision.session);
    if (session == nullptr || session->ending || decision.tag >= session->tags.size()) return;
    const uint32_t generation = core::generation_of(decision.id);
    stage_event(*session, decision.tag, shm::event_word(event, decision.reason, generation));
    if (event != shm::LeaseEvent::kEnded) return;
    TagRoom& room = session->tags[decision.tag];
    if (room.first != decision.room || room.first == shm::kNoRow) return;
    room.unread = session->completion_tail;
}

// Before the result of the keepalive: a client that has read that result ignores any word of the
// past grace.
void Answers::revival(const core::Revival& revival) {
    Session* session = sessions_.at(revival.session);
    if (session == nullptr || session->ending || revival.tag >= session->tags.size()) return;
    stage_event(*session,
                revival.tag,
                shm::event_word(shm::LeaseEvent::kNone, shm::Reason::kOk, revival.generation));
}

void Answers::stage_event(Session& session, uint16_t tag, uint64_t word) {
    stage_store_.kind = shm::LogStoreKind::kLeaseEvent;
    stage_store_.session = session.row;
    stage_store_.generation = session.generation;
    stage_store_.position = tag;
    std::memcpy(stage_store_.entry, &word, sizeof(word));
    core_.stage_store(stage_store_);
    if (word != 0) worded_.push_back(place_of(session, tag));
    sessions_.in_turn(&session);
}

void Answers::complete(Session* session, Completion& entry) {
    if (session == nullptr || session->ending || session->draining) return;
    if (session->completion_room() == 0 &&
        (!session->refresh_released() || session->completion_room() == 0)) {
        return sessions_.end(session, shm::Reason::kLimit);
    }
    read_budget_.answered(session->row, entry.reason, session->slots != 0);
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
    for (const shm::LogStore& store : core_.staged_stores().subspan(stored_)) {
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
    stored_ = 0;
    for (Session* session : sessions_.in_turn()) {
        session->in_turn = false;
        publish(*session);
    }
    sessions_.in_turn().clear();
}

void Answers::publish(Session& session) {
    const uint64_t head = session.up.head();
    if (head != session.consumed) {
        read_budget_.settle(session.row, head - session.consumed);
        session.consumed = head;
        shm::commit_submissions(*session.down, head);
    }
    if (session.events_changed) {
        session.events_changed = false;
        shm::count_event(*session.down);
    }
    session.announce(session.completion_tail);
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

// A dead broker's staged answers; all clients are woken. Each store is idempotent: nothing has been
// told to these sessions since.
void Answers::repeat() {
    if (core_.stores_owed()) store_staged();
    const std::vector<Session*>& all = sessions_.all();
    in_two(all.size() >= kSessionsForTwo, [&](unsigned half) {
        for (size_t at = half; at < all.size(); at += 2) {
            Session* session = all[at];
            assert(session->up.head() == session->consumed);  // no session is settled yet
            shm::commit_submissions(*session->down, session->consumed);
            session->events_changed = true;  // the words may have been stored and not counted
            publish(*session);
            shm::wake_client(*session->down);
            (void)send(session->event_socket.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
    });
}

}  // namespace dibs
