// broker/turn/operations.cpp -- translates submission entries into commands of the core.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/operations.hpp"

#include <cassert>
#include <cstring>
#include <limits>

#include "broker/core/look.hpp"
#include "shm/operation.hpp"

namespace dibs {

using core::row_of;
using shm::Op;
using shm::Reason;
namespace OpFlag = shm::OpFlag;

namespace {

constexpr uint64_t kLongest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

// A duration as the client wrote it, made valid: never negative, never overflowing.
bool valid_duration(uint64_t ns) {
    return ns <= kLongest || ns == shm::kNever;
}

uint8_t flags_of(Op op) {
    switch (op) {
        case Op::kClaim:
            return OpFlag::kQuiet | OpFlag::kReject | OpFlag::kCold | OpFlag::kWait |
                   OpFlag::kByWord | OpFlag::kOfSet;
        case Op::kAnnounce:
            return OpFlag::kQuiet | OpFlag::kThenReady | OpFlag::kOn;
        case Op::kRefuse:
            return OpFlag::kQuiet | OpFlag::kTryAgain;
        case Op::kAdopt:
            return 0;  // its result is what it is for
        case Op::kDone:
            return OpFlag::kQuiet | OpFlag::kThenReady;
        case Op::kProtect:
        case Op::kProvide:
            return OpFlag::kQuiet | OpFlag::kOn;
        default:
            return OpFlag::kQuiet;
    }
}

bool carries_payload(Op op) {
    return op == Op::kClaim || op == Op::kAnnounce || op == Op::kConfirm || op == Op::kDone ||
           op == Op::kProvide || op == Op::kProvisioned || op == Op::kApplication;
}

bool single_choice(uint8_t flags) {
    const unsigned when = flags & (OpFlag::kReject | OpFlag::kCold | OpFlag::kWait);
    return (when & (when - 1)) == 0;
}

// Its word keeps an interval, so it has one.
bool by_word_of_none(const shm::Submission& entry) {
    return (entry.flags & OpFlag::kByWord) != 0 && entry.fence == 0;
}

struct GrantLines {
    uint32_t stride;
    uint32_t lines;
};

GrantLines grant_lines(const shm::PoolRow& pool, uint32_t units) {
    const uint32_t stride = grant_stride(pool);
    return {stride, room_lines(sizeof(shm::GrantHead) + uint64_t{units} * stride)};
}

bool is_lease(const core::Core& core, uint64_t id) {
    const auto row = static_cast<uint32_t>(id);
    return row < core.leases_max() && core.lease(row).state != shm::LeaseState::kFree &&
           core::row_id(core.lease(row).head.generation, row) == id;
}

}  // namespace

Operations::Operations(
    core::Core& core, Quotas& quotas, Pledges& pledges, UidAccounts& accounts, LeaseWords& words)
    : core_(core), quotas_(quotas), pledges_(pledges), accounts_(accounts), words_(words) {
    slot_rooms_.reserve(core.slots_max());
    own_results_.reserve(kOwnResultsMax + 1);
    silenced_.reserve(1024);
    ruled_.reserve(1024);
}

void Operations::begin_turn() {
    words_.begin_turn();
    own_results_.clear();
    silenced_.clear();
    ruled_.clear();
    adopted_.clear();
    gone_cursor_ = 0;
}

void Operations::apply(Session& session,
                       const shm::Submission& entry,
                       std::span<const uint8_t> payload) {
    if (entry.op == Op::kClaim) return claim(session, entry, payload);
    if (entry.op > Op::kApplication || (entry.flags & ~flags_of(entry.op)) != 0) {
        return own_result(session, entry, Reason::kMalformed);
    }
    if (payload.size() != entry.payload_size || (!payload.empty() && !carries_payload(entry.op))) {
        return own_result(session, entry, Reason::kPayload);
    }
    switch (entry.op) {
        case Op::kCancel:
            return cancel(session, entry);
        case Op::kRelease:
        case Op::kFail:
            return release(session, entry);
        case Op::kKeepalive:
            return keepalive(session, entry);
        case Op::kAdopt:
            return adopt(session, entry);
        case Op::kAnnounce:
            return announce(session, entry, payload);
        case Op::kReady:
        case Op::kConfirm:
        case Op::kRefuse:
        case Op::kDone:
        case Op::kWithdraw:
        case Op::kProtect:
            return worker_word(session, entry, payload);
        case Op::kProvide:
            return provide(session, entry, payload);
        case Op::kProvisioned:
            return provisioned(session, entry, payload);
        case Op::kApplication:
            return application(session, entry, payload);
        default:  // kNop
            if (entry.id != 0) session.free_ended(entry.tag);
            return own_result(session, entry, Reason::kOk);
    }
}

Reason Operations::claim_refusal(const Session& session,
                                 const shm::Submission& entry,
                                 std::span<const uint8_t> payload) {
    if ((entry.flags & ~flags_of(Op::kClaim)) != 0 || !single_choice(entry.flags) ||
        !valid_duration(entry.id) || entry.fence > kLongest || by_word_of_none(entry)) {
        return Reason::kMalformed;
    }
    if (payload.size() != entry.payload_size || (!payload.empty() && !claims_.read(payload))) {
        return Reason::kPayload;
    }
    if (!payload.empty() && !Quotas::priority(session, claims_.priority())) {
        const auto most = static_cast<uint32_t>(session.allowance->priority_max);
        return ruled(Reason::kNotAllowed, {shm::RuleKey::kPriorityMax, most});
    }
    if (!payload.empty() && !quotas_.account(session, claims_.terms().account)) {
        return ruled(Reason::kNotAllowed, {shm::RuleKey::kAccount, 0});
    }
    if (!payload.empty() && !claims_.terms().labels.empty() && !quotas_.reads_labels(entry.pool)) {
        return ruled(Reason::kPayload, {shm::RuleKey::kOrder, 0});
    }
    const core::MemberOf* member = payload.empty() ? nullptr : claims_.member();
    if (member != nullptr &&
        core::Look::find_task(core_, session.peer.uid, *member) == shm::kNoRow) {
        const Reason of_task = quotas_.task(session.peer.uid);
        const uint32_t quarter = core::Look::tasks_max(core_) / 4;
        if (of_task != Reason::kOk) return ruled(of_task, {shm::RuleKey::kTaskShare, quarter});
    }
    Reason refusal = tag_refusal(session, entry.tag);
    // It knows by its word that the lease under this tag has ended; a broker that died knew, too.
    if (refusal == Reason::kLimit && words_.put_aside(session, entry.tag)) {
        refusal = tag_refusal(session, entry.tag);
    }
    if (refusal != Reason::kOk) return refusal;
    if (!payload.empty()) {
        const core::ClaimTerms& terms = claims_.terms();
        for (const auto labels : {terms.labels, terms.provisionable}) {
            refusal =
                quotas_.bring(session, entry.pool, payload.size() + claims_.meta().size(), labels);
            if (refusal != Reason::kOk) {
                return ruled(refusal, quotas_.limit(session, payload.size()));
            }
        }
    }
    const uint32_t rows = payload.empty() ? 1 : static_cast<uint32_t>(claims_.also().size()) + 1;
    refusal = pool_refusal(session, entry.pool, rows);
    // What its user has put aside counts against its limits: it goes back first.
    if (refusal == Reason::kLimit && words_.recall_of(session.peer.uid)) {
        refusal = pool_refusal(session, entry.pool, rows);
    }
    if (refusal == Reason::kOk && rows != 1 && !names_further(session)) {
        refusal = Reason::kNotAllowed;
    }
    if (refusal == Reason::kNotAllowed) return ruled(refusal, {shm::RuleKey::kPools, 0});
    return refusal == Reason::kLimit ? ruled(refusal, quotas_.limit(session, 0, rows)) : refusal;
}

Reason Operations::pool_refusal(const Session& session, uint32_t pool, uint32_t rows) {
    const bool strict = pool < core_.pools() && core_.pool(pool).mode == shm::ExpiryMode::kStrict;
    if (strict && !session.peer.killable) return Reason::kUnkillable;
    return quotas_.claim(session, pool, rows);
}

bool Operations::is_plain_claim(const shm::Submission& entry) {
    const uint64_t first_half = shm::key_word(entry);
    uint64_t second_half = 0;
    std::memcpy(&second_half, entry.key + sizeof(first_half), sizeof(second_half));
    return entry.op == Op::kClaim && (entry.flags & ~flags_of(Op::kClaim)) == 0 &&
           (entry.flags & (OpFlag::kByWord | OpFlag::kOfSet)) == 0 && single_choice(entry.flags) &&
           valid_duration(entry.id) && entry.fence <= kLongest && entry.payload_size == 0 &&
           (first_half | second_half) == 0;
}

// The client takes the tag that it gave back last, or one that it has not used yet.
uint16_t Operations::tag_to_come(const Session& session) {
    const bool free = session.tags[session.claimed_tag].first == shm::kNoRow;
    return free ? session.claimed_tag : static_cast<uint16_t>(session.claimed_tag + 1);
}

TagRoom Operations::room_to_come(const Session& session, const GrantSize& size) const {
    if (size.pool >= core_.pools()) return {};
    const shm::PoolRow& pool = core_.pool(size.pool);
    const GrantLines needed = grant_lines(pool, size.units);
    return {.first = session.rooms.to_come(needed.lines),
            .lines = needed.lines,
            .stride = needed.stride,
            .answer_place = grant_answer_place(pool)};
}

// A tag that is out of range, or whose lease has not ended: the core says kLimit, too, but a room
// must not be taken for it.
Reason Operations::tag_refusal(const Session& session, uint16_t tag) {
    if (tag >= session.tags.size()) return Reason::kLimit;
    const TagRoom& room = session.tags[tag];
    return room.first != shm::kNoRow && !room.ended() ? Reason::kLimit : Reason::kOk;
}

// The grant room: a head, then a region for each unit. Pools and sizes that the core will reject
// need none. False: there is no room.
bool Operations::take_grant_room(Session& session,
                                 uint16_t tag,
                                 const GrantSize& size,
                                 GrantRoom* taken) {
    if (size.pool >= core_.pools() || size.units == 0 || size.units > shm::kUnitsMax) return true;
    const shm::PoolRow& pool = core_.pool(size.pool);
    const auto [stride, lines] = grant_lines(pool, size.units);
    return take_room(session,
                     tag,
                     {.lines = lines, .stride = stride, .answer_place = grant_answer_place(pool)},
                     taken);
}

bool Operations::take_room(Session& session, uint16_t tag, TagRoom room, GrantRoom* taken) {
    if (session.tags[tag].ended()) session.free_tag(tag, session.tags[tag].unread);
    room.first = session.take_room(room.lines);
    if (room.first == shm::kNoRow) return false;
    // Prefetches the line, which the client read at an earlier grant: to have it back takes as long
    // as the decision.
    __builtin_prefetch(session.payload + size_t{room.first} * shm::kLineSize, 1);
    room.ingested_ns = core_.now();
    session.tags[tag] = room;
    *taken = {room.first, room.lines};
    return true;
}

core::Claim Operations::command_of(const Session& session,
                                   const shm::Submission& entry,
                                   std::span<const uint8_t> payload) {
    core::Claim command;
    command.session = session.row;
    command.tag = entry.tag;
    command.units = entry.units;
    command.pool = entry.pool;
    command.user_data = entry.user_data;
    command.timeout_ns = entry.id;
    command.interval_ns = entry.fence;
    command.by_word = (entry.flags & OpFlag::kByWord) != 0;
    std::memcpy(command.key.data(), entry.key, sizeof(entry.key));
    if ((entry.flags & OpFlag::kReject) != 0) command.when_busy = shm::WhenBusy::kReject;
    if ((entry.flags & OpFlag::kCold) != 0) command.when_busy = shm::WhenBusy::kCold;
    command.when_busy_given =
        (entry.flags & (OpFlag::kReject | OpFlag::kCold | OpFlag::kWait)) != 0;
    command.payload = payload;
    return command;
}

// What its payload says. Its labels and its account are in claims_.
void Operations::bring(core::Claim* command) const {
    if (command->payload.empty() || command->refusal != Reason::kOk) return;
    command->priority = claims_.priority();
    command->least = claims_.least();
    command->most = claims_.most();
    command->offer = claims_.offer();
    command->also = claims_.also();
    command->meta = claims_.meta();
    command->member = claims_.member();
}

// In a pool of that row, or in the largest of several.
void Operations::give_room(Session& session, uint32_t pool, core::Claim* command) {
    GrantRoom room;
    if (command->refusal == Reason::kOk &&
        !take_grant_room(session, command->tag, {pool, command->units}, &room)) {
        const uint32_t lines = grant_lines(core_.pool(pool), command->units).lines;
        const auto bytes = static_cast<uint32_t>(lines * shm::kLineSize);
        command->refusal = ruled(Reason::kNoRoom, {shm::RuleKey::kDownPayload, bytes});
        words_.recall_of(session);  // their rooms are free for its next try
    }
    command->room = room.first;
    command->room_lines = room.lines;
}

void Operations::claim(Session& session,
                       const shm::Submission& entry,
                       std::span<const uint8_t> payload) {
    if ((entry.flags & OpFlag::kOfSet) != 0) [[unlikely]]
        return claim_of_set(session, entry, payload);
    core::Claim command = command_of(session, entry, payload);
    command.refusal = claim_refusal(session, entry, payload);
    const bool is_read = command.refusal == Reason::kOk && !payload.empty();
    if (is_read && !claims_.also().empty()) return claim_of_several(session, entry, &command);
    give_room(session, entry.pool, &command);
    if (command.refusal == Reason::kOk) {  // else either may be any number
        session.claimed_pool = entry.pool;
        session.claimed_tag = entry.tag;
    }
    if (command.refusal == Reason::kOk) words_.make_room(entry.pool, entry.units);
    pledges_.claim(session, command);
    bring(&command);
    core::ClaimTerms terms;
    if (entry.pool < core_.pools() && core_.pool(entry.pool).order == shm::PoolOrder::kAccount) {
        const bool brought = !payload.empty() && command.refusal == Reason::kOk;
        if (brought) terms = claims_.terms();
        if (!brought || !claims_.says_preempt()) {
            const PoolPreempt preempt =
                entry.pool < preempts_.size() ? preempts_[entry.pool] : PoolPreempt{};
            terms.preempt_mode = preempt.mode;
            terms.preempt_grace_ns = preempt.grace_ns;
        }
        if (command.refusal == Reason::kOk) accounts_.admit(session);
        if (terms.account.empty()) terms.account = session.charged_to;
        command.terms = &terms;
    }
    core_.apply(command);
}

void Operations::set_preempt(uint32_t pool, const PoolPreempt& preempt) {
    if (pool >= preempts_.size()) preempts_.resize(pool + 1);
    preempts_[pool] = preempt;
}

void Operations::cancel(Session& session, const shm::Submission& entry) {
    const uint32_t lease = core_.lease_of_tag(session.row, entry.tag);
    if (lease != shm::kNoRow) words_.want(lease);  // its client may have put it aside
    const size_t first = core_.decisions().size();
    core_.apply(core::Cancel{session.row, entry.tag, entry.user_data});
    // A grant that has not been read yet may still be looked at.
    if (after(entry, first) == Reason::kOk) session.free_tag(entry.tag, session.completion_tail);
}

// An operation shows the fence of the take that it is about.
// False: its holder has put the lease aside, and with it this take.
bool Operations::hear_of_takes(const Session& session, const shm::Submission& entry) {
    if (!is_lease(core_, entry.id)) return true;
    const uint32_t row = row_of(entry.id);
    return core_.lease(row).session != session.row || words_.hear(row, entry.fence);
}

void Operations::release(Session& session, const shm::Submission& entry) {
    const uint32_t row = row_of(entry.id);
    const uint16_t tag = row < core_.leases_max() ? core_.lease(row).tag : uint16_t{0};
    if (!hear_of_takes(session, entry)) return own_result(session, entry, Reason::kAlreadyEnded);
    const size_t first = core_.decisions().size();
    core_.apply(
        core::Release{session.row, entry.op == Op::kFail, entry.id, entry.fence, entry.user_data});
    const Reason reason = after(entry, first);
    // A client that knows id and fence has read the grant.
    if (reason == Reason::kOk) session.free_tag(tag, 0);
    if (reason == Reason::kAlreadyEnded) {
        give_up(session, entry.id);
        give_up_claim(session, entry);
        if (shm::key_word(entry) != 0) session.free_ended(entry.tag);  // the lease's own tag
    }
}

// The lease was taken and its claim waits again, or has been granted again: a client that gives the
// one back wants the other no more. Its library has forgotten the tag, so no completion is sent for
// it.
void Operations::give_up_claim(Session& session, const shm::Submission& entry) {
    const uint64_t number = shm::key_word(entry);
    if (number == 0 || entry.tag >= session.tags.size()) return;
    if (core_.number_of_tag(session.row, entry.tag) != number) return;
    const uint32_t lease = core_.lease_of_tag(session.row, entry.tag);
    if (lease != shm::kNoRow) {
        // An earlier take of the lease that the tag still has: that one is not given up.
        if (core::row_id(core_.lease(lease).head.generation, lease) == entry.id) return;
        words_.want(lease);
    }
    const size_t first = core_.decisions().size();
    core_.apply(core::Cancel{session.row, entry.tag, entry.user_data});
    const auto decisions = core_.decisions();
    for (size_t i = first; i < decisions.size(); ++i) {
        const bool end = decisions[i].kind == core::DecisionKind::kEnd;
        const bool result = decisions[i].kind == core::DecisionKind::kResult;
        if (result || (end && decisions[i].claim == number)) {
            silenced_.push_back(static_cast<uint32_t>(i));
        }
    }
    session.free_tag(entry.tag, session.completion_tail);
}

// The lease has ended in this very turn, before its release was read. Its holder, which has said
// that it is done with it, may claim with its tag again.
void Operations::give_up(Session& session, uint64_t id) {
    for (const core::Decision& decision : core_.decisions()) {
        if (decision.kind != core::DecisionKind::kLeaseEnd || decision.id != id) continue;
        if (decision.session == session.row && session.tags[decision.tag].first == decision.room) {
            session.free_tag(decision.tag, session.completion_tail);
        }
    }
}

void Operations::keepalive(Session& session, const shm::Submission& entry) {
    const auto interval = shm::key_word(entry);
    if (interval > kLongest) return own_result(session, entry, Reason::kMalformed);
    if (!hear_of_takes(session, entry)) return own_result(session, entry, Reason::kAlreadyEnded);
    const size_t first = core_.decisions().size();
    core_.apply(core::Keepalive{session.row, entry.id, entry.fence, interval, entry.user_data});
    after(entry, first);
}

// The room is as large as the grant's was; for a missing lease the core returns the error.
void Operations::adopt(Session& session, const shm::Submission& entry) {
    const uint32_t row = row_of(entry.id);
    const bool there = is_lease(core_, entry.id);
    // From here on its holder, which may be another process of the user, does not take it again.
    if (there && core_.lease(row).session != session.row &&
        core_.session(core_.lease(row).session).uid == session.peer.uid) {
        words_.want(row);
    }
    core::Adopt command;
    command.session = session.row;
    command.tag = entry.tag;
    command.lease = entry.id;
    command.fence = entry.fence;
    command.user_data = entry.user_data;
    command.refusal = tag_refusal(session, entry.tag);
    GrantRoom room;
    if (command.refusal == Reason::kOk && there) {
        const shm::LeaseRow& lease = core_.lease(row);
        const bool strict = lease.mode == shm::ExpiryMode::kStrict;
        if (strict && !session.peer.killable) {
            command.refusal = Reason::kUnkillable;
        } else if (!take_room_of_lease(session, entry.tag, row, &room)) {
            command.refusal = Reason::kNoRoom;
        }
    }
    command.room = room.first;
    command.room_lines = room.lines;
    const size_t first = core_.decisions().size();
    core_.apply(command);
    const bool adopted = core_.decisions()[first].kind == core::DecisionKind::kAdopted;
    if (!adopted && command.room != shm::kNoRow) session.free_tag(entry.tag, 0);
}

void Operations::own_result(Session& session, const shm::Submission& entry, Reason reason) {
    if (reason == Reason::kOk && (entry.flags & OpFlag::kQuiet) != 0) return;
    own_results_.push_back({&session, entry.user_data, reason});
}

Reason Operations::after(const shm::Submission& entry, size_t first) {
    const auto decisions = core_.decisions();
    assert(decisions.size() > first && decisions[first].kind == core::DecisionKind::kResult);
    const Reason reason = decisions[first].reason;
    if (reason == Reason::kOk && (entry.flags & OpFlag::kQuiet) != 0) {
        silenced_.push_back(static_cast<uint32_t>(first));
    }
    return reason;
}

}  // namespace dibs
