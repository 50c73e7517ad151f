// clientlib/receive.cpp -- handles what the broker sends: completions and lease events.
//
// The bytes come from the broker, but a library that is mapped into every program must not crash on
// any: an entry without a valid tag or answer ends the session.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "clientlib/clock.hpp"
#include "clientlib/pool_set.hpp"
#include "clientlib/session.hpp"
#include "shm/histogram.hpp"
#include "shm/rule.hpp"

namespace dibs::client {

using shm::CompletionKind;
using shm::Outcome;

namespace {

dibs_holder public_holder(const shm::Completion& completion) {
    shm::Holder holder = shm::holder_of(completion);
    if (holder.uid == shm::kNoRow) return {};
    if (holder.uid == shm::kHiddenUid) holder.uid = DIBS_HIDDEN_UID;
    return {holder.uid, holder.pid, public_duration(holder.age_ns), holder.claim};
}

}  // namespace

void Session::free_tag_row(uint32_t tag) {
    Tag& row = tags[tag];
    if (row.state == TagState::kLive) --live;
    if (row.state == TagState::kOver) --over;
    const bool room_owed = row.state == TagState::kOver || row.room_owed;
    room_is_owed(tag, false);
    if (row.state == TagState::kClaiming || row.requeue) --claims_open;
    if (row.event != 0) --events_to_reap;
    const uint32_t use = row.use;
    const bool gave_up = row.state == TagState::kLive || row.cancelled;
    const uint64_t name_of_claim = claim_name(tag, row);
    row = {};
    row.use = use + 1;
    row.gave_up = gave_up ? name_of_claim : 0;
    row.next_free = free_tag;
    free_tag = tag;
    if (room_owed) room_is_owed(tag, true);
}

void Session::free_answer_row(uint32_t index) {
    Answer& answer = answers[index];
    if (answer.new_slot) --new_slots;
    answer.new_slot = false;
    parts_max -= answer.parts;
    answer.parts = 0;
    answer.slot_name = 0;
    answer.pending = false;
    ++answer.use;
    answer.next_free = free_answer;
    free_answer = index;
    --answers_open;
}

namespace {

// The tag holds what was granted from here on.
void hold(Session& session, uint32_t tag, const shm::Completion& completion) {
    Tag& row = session.tags[tag];
    row.state = TagState::kLive;
    ++session.live;
    row.lease = completion.id;
    row.fence = completion.fence;
    row.first_fence = completion.fence;
    row.may_park = completion.reason == shm::Reason::kMayPark && tag == session.awaited_tag;
    row.parked_before = false;
    row.claim = completion.claim;
    row.room = completion.data;
    row.interval_ns = completion.value;
    row.units = completion.units;
    row.event_seen = 0;
    row.end_code = 0;
    if (row.interval_ns != 0) row.until_ns = monotonic_ns() + row.interval_ns;
}

void fill_grant(const Session& session,
                uint32_t tag,
                const shm::Completion& completion,
                dibs_completion& out) {
    out.lease = lease_of(session, tag);
    out.interval_ns = public_duration(completion.value);
    out.provision = ~completion.holder;
}

// From its submission until its grant was taken in; what a batch brings is taken in at one time.
void record_latency(Session& session, Tag& row) {
    if (row.asked_ticks == 0) return;
    if (session.pumped_ticks == 0) session.pumped_ticks = ticks();
    shm::histogram_record(session.histogram->bucket,
                          session.tick.to_ns(session.pumped_ticks - row.asked_ticks));
    row.asked_ticks = 0;  // should it wait again, that is not counted
}

// A claim's end. True if it is for the caller.
bool accept_claim(Session& session, const shm::Completion& completion, dibs_completion& out) {
    const uint32_t tag = completion.tag;
    if (tag < session.sizes.tags) {
        const Tag& row = session.tags[tag];
        // Given back while its claim was granted again: the broker takes that back, too.
        if (row.gave_up != 0 && row.gave_up == completion.user_data) return false;
        // Its grant was told, and it had been taken and cancelled by then.
        const bool of_this = completion.user_data == claim_name(tag, row);
        if (row.state == TagState::kOver && row.cancelled && of_this) return false;
        // It has waited again, which the word that said so does not show any more.
        if (row.state == TagState::kLive) session.wait_again(tag, DIBS_EREVOKED);
    }
    if (tag >= session.sizes.tags || session.tags[tag].state != TagState::kClaiming ||
        completion.user_data != claim_name(tag, session.tags[tag])) {
        session.end(DIBS_ESESSION, DIBS_EMALFORMED);
        return false;
    }
    Tag& row = session.tags[tag];
    const bool granted = completion.outcome == Outcome::kGranted;
    session.tell_before_grant(tag);
    if (granted) {
        if (!row.requeue) --session.claims_open;
        if (!row.abandoned) record_latency(session, row);
        hold(session, tag, completion);
    }
    if (row.abandoned) {
        if (row.cancel_owed) --session.owed;
        row.cancel_owed = false;
        if (!granted) {
            session.free_tag_row(tag);
        } else {
            row.release_owed = true;
            ++session.owed;
        }
        return false;
    }
    out = {};
    out.user_data = row.user_data;
    out.kind = DIBS_CLAIM_ENDED;
    out.outcome = static_cast<int32_t>(completion.outcome);
    out.code = granted ? DIBS_OK : static_cast<int32_t>(completion.reason);
    out.claim = completion.claim;
    out.pool = pool_of_end(session, tag, completion);
    if (granted) {
        if (row.cancelled) session.lease_over(tag);
        fill_grant(session, tag, completion, out);
    } else {
        out.holder = public_holder(completion);
        // The first claim may not hold anything yet: then its number alone is known.
        if (out.code == DIBS_EDUPLICATE) out.holder.claim = completion.id;
        if (out.code == DIBS_EREFUSED) {
            out.worker_code = static_cast<int64_t>(completion.value);
        } else if (out.code == DIBS_ENOTALLOWED || out.code == DIBS_ELIMIT ||
                   out.code == DIBS_EPAYLOAD || out.code == DIBS_ENOROOM ||
                   out.code == DIBS_EUNAVAILABLE) {
            const shm::Rule rule = shm::rule_in(completion.value);
            out.refused_by = static_cast<uint32_t>(rule.key);
            out.refused_at = rule.number;
        } else {
            out.retry_after_ns = public_duration(completion.value);
        }
        session.free_tag_row(tag);
    }
    return true;
}

void prolong(Session& session, const Answer& answer, uint64_t interval_ns) {
    const uint32_t tag = answer.lease.tag;
    if (tag >= session.sizes.tags) return;
    Tag& row = session.tags[tag];
    if (row.state != TagState::kLive || row.lease != answer.lease.id) return;
    row.until_ns = answer.sent_ns + interval_ns;
    if (row.event_seen == shm::LeaseEvent::kRevoking) return;
    row.interval_ns = interval_ns;
    row.event_seen = 0;  // the word of a grace that is over was stored over before this result
}

// The result of an adoption. If the caller has given up, the lease is released.
void accept_adoption(Session& session, const Answer& answer, const shm::Completion& completion) {
    const uint32_t tag = answer.lease.tag;
    if (completion.reason < shm::Reason::kOk) return session.free_tag_row(tag);
    hold(session, tag, completion);
    session.tags[tag].by_word = completion.reason == shm::Reason::kByWord;
    if (!answer.discarded) return;
    session.tags[tag].release_owed = true;
    ++session.owed;
}

// An operation's result. True if it is for the caller.
bool accept_result(Session& session, const shm::Completion& completion, dibs_completion& out) {
    if (completion.user_data == kDiscard) return false;
    const auto index = static_cast<uint32_t>(completion.user_data);
    if (index >= session.answers_max || !session.answers[index].pending ||
        session.answers[index].use != completion.user_data >> 32) {
        session.end(DIBS_ESESSION, DIBS_EMALFORMED);
        return false;
    }
    const Answer& answer = session.answers[index];
    const bool slot = completion.kind == CompletionKind::kSlot;
    out = {};
    out.user_data = answer.user_data;
    out.kind = DIBS_RESULT;
    out.code = static_cast<int32_t>(completion.reason);
    out.lease = answer.lease;
    if (slot) {
        out.slot = completion.id;
        out.round = completion.fence;
        if (out.code == DIBS_OK) {
            session.remember_slot(
                {completion.id, answer.slot_name, answer.answer_max, answer.parts});
        }
    } else {
        out.holder = public_holder(completion);
    }
    // A lease of this session that another one holds has been adopted: for this one it has ended.
    if (out.code == DIBS_ENOTHOLDER && out.lease.id != 0 && out.lease.session == session.name) {
        out.code = DIBS_ALREADY_ENDED;
        out.holder = {};
    }
    if (answer.op == shm::Op::kKeepalive && out.code == DIBS_OK) {
        out.interval_ns = public_duration(completion.value);
        prolong(session, answer, completion.value);
    }
    if (answer.op == shm::Op::kApplication) {
        session.accept_app(completion.user_data, completion, out);
    }
    if (answer.op == shm::Op::kAdopt) {
        if (completion.reason == shm::Reason::kByWord) out.code = DIBS_OK;
        accept_adoption(session, answer, completion);
        out.claim = completion.claim;
        out.interval_ns = public_duration(completion.value);
        out.lease = out.code == DIBS_OK ? lease_of(session, answer.lease.tag) : dibs_lease{};
        out.holder = {};
    }
    const bool discarded = answer.discarded;
    session.free_answer_row(index);
    return !discarded;
}

}  // namespace

bool Session::accept(const shm::Completion& completion, dibs_completion& out) {
    switch (completion.kind) {
        case CompletionKind::kClaim: {
            // What is awaited goes to its caller's memory at once.
            const bool mine = completion.tag == awaited_tag;
            SetWait::Member* member = member_of_tag(*this, completion.tag);
            if (!accept_claim(*this, completion, mine ? *awaited : out)) return false;
            if (mine) awaited_tag = kNone;
            if (member != nullptr) take_set_end(*this, *member, out);
            return !mine && member == nullptr;
        }
        case CompletionKind::kResult:
        case CompletionKind::kSlot: {
            const bool mine = awaited_answer != kNone &&
                              static_cast<uint32_t>(completion.user_data) == awaited_answer;
            if (!accept_result(*this, completion, mine ? *awaited : out)) return false;
            if (mine) awaited_answer = kNone;
            return !mine;
        }
        case CompletionKind::kAssign:
        case CompletionKind::kRevoke:
        case CompletionKind::kNotice:
        case CompletionKind::kCreate:
        case CompletionKind::kStop:
            if (assignments.full()) {
                end(DIBS_ESESSION, DIBS_EMALFORMED);
            } else {
                assignments.push(completion);
                if (completion.kind == CompletionKind::kCreate) keep_sizes(*this);
            }
            return false;
        case CompletionKind::kApplication:
            if (app_events.full()) {
                end(DIBS_ESESSION, DIBS_EMALFORMED);
            } else {
                app_events.push(completion);
            }
            return false;
    }
    end(DIBS_ESESSION, DIBS_EMALFORMED);
    return false;
}

bool Session::take_awaited_grant() {
    shm::Completion completion;
    if (!awaited_plainly || awaited_tag == kNone || owed != 0 || end_code != 0) return false;
    if (completions.peek(completion) != shm::Poll::kEntry) return false;
    const uint32_t tag = awaited_tag;
    const Tag& row = tags[tag];
    if (!shm::is_grant(completion, static_cast<uint16_t>(row.units), static_cast<uint16_t>(tag)) ||
        completion.user_data != claim_name(tag, row)) {
        return false;
    }
    completions.skip();
    shm::release_completions(*up, completions.head());
    --claims_open;
    hold(*this, tag, completion);
    dibs_completion& out = *awaited;
    out = {};
    out.user_data = row.user_data;
    out.kind = DIBS_CLAIM_ENDED;
    out.outcome = DIBS_GRANTED;
    out.claim = completion.claim;
    out.pool = pool_of_end(*this, tag, completion);
    fill_grant(*this, tag, completion, out);
    awaited_tag = kNone;
    // Later entries may be about it: they are taken in before the caller looks at the lease.
    if (completions.maybe()) pump();
    return true;
}

void Session::pump() {
    absorb();
    settle();
}

void Session::absorb() {
    const uint64_t before = completions.head();
    pumped_ticks = 0;
    while (end_code == 0 && !stash.full()) {
        shm::Completion completion;
        const shm::Poll poll_result = completions.pop(completion);
        if (poll_result == shm::Poll::kNothing) break;
        dibs_completion out;
        if (poll_result == shm::Poll::kViolation) {
            end(DIBS_ESESSION, DIBS_EMALFORMED);
        } else if (accept(completion, out)) {
            stash.push(out);
        }
    }
    if (completions.head() != before) shm::release_completions(*up, completions.head());
}

namespace {

// What the broker has left beside the event, in nanoseconds; 0 where there is nothing to read.
uint64_t time_left(const Session& session, const Tag& row) {
    const uint64_t area = session.sizes.down_payload;
    if (row.room >= area || area - row.room < sizeof(shm::GrantHead)) return 0;
    uint32_t left_ms = 0;
    std::memcpy(&left_ms,
                session.down_payload + row.room + offsetof(shm::GrantHead, left_ms),
                sizeof left_ms);
    return left_ms == shm::kNoRow ? shm::kNever / 2 : uint64_t{left_ms} * DIBS_MILLISECOND;
}

int32_t public_kind(uint8_t event) {
    switch (event) {
        case shm::LeaseEvent::kGrace:
            return DIBS_LEASE_GRACE;
        case shm::LeaseEvent::kRevoking:
            return DIBS_LEASE_REVOKING;
        case shm::LeaseEvent::kRequeued:
            return DIBS_LEASE_REQUEUED;
        default:
            return DIBS_LEASE_ENDED;
    }
}

}  // namespace

bool Session::look_at_event(uint32_t tag) {
    const Tag& row = tags[tag];
    if (row.state != TagState::kLive || row.release_owed) return true;
    uint64_t word = event_words[tag].load(std::memory_order_acquire);  // pairs: store_event
    // The tag's word says what its last lease came to. That is the one known here only if no grant
    // from before the word is still unread; two leases' generations may well be the same.
    while (end_code == 0 && completions.maybe()) {
        if (stash.full()) {
            // Behind a lease that may not wait again nothing can lie that is of this tag.
            if (row.requeue || row.adopted_as != 0) return false;
            break;
        }
        absorb();
        word = event_words[tag].load(std::memory_order_acquire);
    }
    if (row.state == TagState::kLive && !row.release_owed) take_event(tag, word);
    return true;
}

void Session::take_event(uint32_t tag, uint64_t word) {
    Tag& row = tags[tag];
    const uint8_t state = shm::event_state(word);
    if (state == row.event_seen || shm::event_generation(word) != row.lease >> 32) return;
    if (state == shm::LeaseEvent::kNone) {  // it lives again
        row.event_seen = state;
        return;
    }
    if (state > shm::LeaseEvent::kRequeued) return;
    if (state == shm::LeaseEvent::kRequeued) {
        return wait_again(tag, static_cast<int>(shm::event_reason(word)));
    }
    if (row.event == 0) ++events_to_reap;
    row.event = state;
    row.event_seen = state;
    row.end_code = static_cast<int>(shm::event_reason(word));
    if (state == shm::LeaseEvent::kRevoking) {
        row.until_ns = monotonic_ns() + time_left(*this, row);
    }
    if (state == shm::LeaseEvent::kEnded) lease_over(tag);
}

void Session::lease_over(uint32_t tag) {
    Tag& row = tags[tag];
    row.state = TagState::kOver;
    if (row.requeue) --claims_open;
    row.requeue = false;
    --live;
    ++over;
}

void Session::take_in() {
    // Before the completions, so that the grant of every lease whose event is counted has been
    // taken in when the words are looked at; if the stash had no room for it, they are looked at
    // again.
    const uint32_t count = down->events.load(std::memory_order_acquire);  // pairs: count_event
    pump();
    if (count == events_seen) return;
    bool all = !stash.full();
    for (uint32_t tag = 0; tag < sizes.tags && live != 0; ++tag)
        all &= look_at_event(tag);
    if (all) events_seen = count;
    settle();  // what a look has made owed
}

void Session::reap_event(dibs_completion& out) {
    for (uint32_t tag = 0; tag < sizes.tags; ++tag) {
        Tag& row = tags[tag];
        if (row.event == 0) continue;
        return fill_event(tag, out);
    }
}

void Session::fill_event(uint32_t tag, dibs_completion& out) {
    Tag& row = tags[tag];
    out = {};
    out.user_data = row.user_data;
    out.kind = public_kind(row.event);
    out.code = row.end_code;
    out.claim = row.claim;
    out.lease = lease_of(*this, tag);
    if (out.kind == DIBS_LEASE_REQUEUED) {
        out.lease.id = row.was_lease;
        out.lease.fence = row.was_fence;
    } else if (out.kind == DIBS_LEASE_REVOKING) {
        const uint64_t now = monotonic_ns();
        out.interval_ns = row.until_ns > now ? public_duration(row.until_ns - now) : 0;
    } else if (out.kind == DIBS_LEASE_GRACE) {
        out.interval_ns = public_duration(time_left(*this, row));
    }
    row.event = 0;
    --events_to_reap;
}

}  // namespace dibs::client
