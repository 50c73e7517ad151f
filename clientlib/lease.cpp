// clientlib/lease.cpp -- releases, prolongs and describes leases.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "clientlib/session.hpp"

namespace dibs::client {

int Session::await_answer(uint32_t index, int64_t wait_ns, dibs_completion& out) {
    awaited = &out;
    awaited_answer = index;
    const bool came = Wait(*this, wait_ns).until(Awaited::kAnswer);
    if (awaited_answer == kNone) return DIBS_OK;
    awaited_answer = kNone;
    answers[index].discarded = true;
    return came ? DIBS_EUNREAD : DIBS_ETIMEDOUT;
}

int Session::finish(uint32_t index, Told told, int64_t wait_ns) {
    publish();
    if (told == Told::kNobody) return DIBS_OK;
    dibs_completion out = {};
    const int code = await_answer(index, wait_ns, out);
    if (code != DIBS_OK) return code;
    if (out.code == DIBS_ENOTHOLDER) last_holder = out.holder;
    return out.code;
}

namespace {

// The tag of a lease that this session knows, else null.
Tag* find(Session& session, const dibs_lease& lease) {
    if (lease.session != session.name || lease.tag >= session.sizes.tags) return nullptr;
    Tag& row = session.tags[lease.tag];
    const bool known = row.state == TagState::kLive || row.state == TagState::kOver;
    return known && row.lease == lease.id && lease.id != 0 ? &row : nullptr;
}

// The same after a look at what has become of it.
Tag* find_as_it_is(Session& session, const dibs_lease& lease) {
    if (find(session, lease) != nullptr) (void)session.look_at_event(lease.tag);
    return find(session, lease);
}

// It was taken, and its claim waited again under its tag.
bool was_taken(const Session& session, const dibs_lease& lease) {
    if (lease.session != session.name || lease.tag >= session.sizes.tags) return false;
    return session.tags[lease.tag].was_lease == lease.id && lease.id != 0;
}

// The same, and it still does.
bool waits_again(const Session& session, const dibs_lease& lease) {
    if (!was_taken(session, lease)) return false;
    const Tag& row = session.tags[lease.tag];
    return row.state == TagState::kClaiming && !row.abandoned;
}

// An earlier take of the same lease was released before this one.
int other_fence(const Tag& row, const dibs_lease& lease) {
    const bool earlier = lease.fence >= row.first_fence && lease.fence < row.fence;
    return earlier ? DIBS_ALREADY_ENDED : DIBS_ESTALE;
}

int give_back(dibs_session* session, const dibs_lease* lease, int64_t wait_ns, shm::Op op) {
    int code = check_open(session);
    if (code != DIBS_OK) return code;
    if (lease == nullptr) return DIBS_EARGUMENT;
    if (wait_ns < 0) return DIBS_ENEGATIVE;
    Tag* row = find(*session, *lease);
    // Its word says at once whether it has ended, or is asked back.
    const bool may_park = row != nullptr && row->may_park && row->state == TagState::kLive &&
                          row->fence == lease->fence && op == shm::Op::kRelease;
    if (may_park && session->park(lease->tag)) return DIBS_OK;
    row = find_as_it_is(*session, *lease);
    if (row == nullptr && session->end_code != 0) return session->end_code;
    if (row != nullptr && row->fence != lease->fence) return other_fence(*row, *lease);
    if (row == nullptr && session->is_parked(*lease)) return DIBS_ALREADY_ENDED;
    if (row != nullptr && row->state == TagState::kOver) {
        session->free_tag_row(lease->tag);
        return DIBS_ALREADY_ENDED;
    }
    if (waits_again(*session, *lease)) {
        session->abandon(lease->tag);
        return DIBS_ALREADY_ENDED;
    }
    if (row == nullptr && session->give_up_untold(*lease)) return DIBS_ALREADY_ENDED;
    // A lease that this session does not know is the broker's to judge.
    if (row == nullptr && wait_ns == 0) wait_ns = kAnswerTimeoutNs;
    const Told told = wait_ns == 0 ? Told::kNobody : Told::kResult;
    shm::Submission entry;
    entry.op = op;
    entry.id = lease->id;
    entry.fence = lease->fence;
    if (row != nullptr) name_claim(entry, lease->tag, *row);
    const uint32_t use = row != nullptr ? row->use : 0;
    uint32_t index = kNone;
    code = session->submit(entry, 0, told, index);
    if (code != DIBS_OK) return code;
    if (index != kNone) session->answers[index].lease = *lease;
    if (row != nullptr) session->give_up(lease->tag, use, dibs::shm::key_word(entry));
    return session->finish(index, told, wait_ns);
}

// For the accessors: DIBS_ENOTFOUND, DIBS_ESTALE, DIBS_ALREADY_ENDED.
int look_up(dibs_session* session, const dibs_lease* lease, Tag*& row) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (lease == nullptr) return DIBS_EARGUMENT;
    if (lease->session != session->name || lease->id == 0) return DIBS_ENOTFOUND;
    row = find(*session, *lease);
    if (row == nullptr) return DIBS_ALREADY_ENDED;
    return row->fence == lease->fence ? DIBS_OK : other_fence(*row, *lease);
}

// For what lies in the lease's room: where a tag may hold more than one lease, the last word about
// it may be of a later one.
int look_up_room(dibs_session* session, const dibs_lease* lease, Tag*& row) {
    const int code = look_up(session, lease, row);
    if (code != DIBS_OK || (!row->requeue && row->adopted_as == 0)) return code;
    (void)session->look_at_event(lease->tag);
    return look_up(session, lease, row);
}

// One unit's region in the grant room. The room lies in DOWN; its numbers are checked all the
// same, so that no accessor leaves the mapping.
struct Region {
    const uint8_t* bytes = nullptr;
    shm::GrantSlot slot = {};
    // Of its worker: what it said done with, if that ended the lease and was not nothing; else what
    // it confirmed with.
    const uint8_t* answer = nullptr;
    uint32_t answer_size = 0;
};

// The event says so, whether it has been taken in or not. Pairs with store_event: makes the last
// answer visible.
bool ended_by_done(const Session& session, uint32_t tag) {
    const uint64_t word = session.event_words[tag].load(std::memory_order_acquire);
    return shm::event_state(word) == shm::LeaseEvent::kEnded &&
           shm::event_reason(word) == shm::Reason::kDone &&
           shm::event_generation(word) == session.tags[tag].lease >> 32;
}

int find_region(const Session& session, uint32_t tag, uint32_t unit, Region& region) {
    const Tag& row = session.tags[tag];
    if (unit >= row.units) return DIBS_EUNITS;
    const uint64_t area = session.sizes.down_payload;
    shm::GrantHead head = {};
    if (row.room >= area || area - row.room < sizeof head) return DIBS_ENOVALUE;
    memcpy(&head, session.down_payload + row.room, sizeof head);
    const uint64_t place = row.room + sizeof head + uint64_t{unit} * head.stride;
    if (head.stride < sizeof region.slot || unit >= head.units || place + head.stride > area) {
        return DIBS_ENOVALUE;
    }
    region.bytes = session.down_payload + place;
    // The last size only when it is there to stay.
    constexpr size_t kFirst = offsetof(shm::GrantSlot, done_size);
    const size_t known = ended_by_done(session, tag) ? sizeof region.slot : kFirst;
    memcpy(&region.slot, region.bytes, known);
    const uint64_t attributes_end = sizeof region.slot + uint64_t{region.slot.attributes_size};
    if (head.answer_place > head.stride || attributes_end > head.answer_place) return DIBS_ENOVALUE;
    const uint32_t most = shm::grant_answer_room(head.stride, head.answer_place);
    if (region.slot.answer_size > most || region.slot.done_size > most) return DIBS_ENOVALUE;
    const bool last = region.slot.done_size != 0;
    region.answer = region.bytes + head.answer_place + (last ? most : 0);
    region.answer_size = last ? region.slot.done_size : region.slot.answer_size;
    return DIBS_OK;
}

// Checked as the regions are.
int find_part(const Session& session, const Tag& row, uint32_t index, dibs_part& part) {
    const uint64_t area = session.sizes.down_payload;
    shm::GrantHead head = {};
    if (row.room >= area || area - row.room < sizeof head) return DIBS_ENOVALUE;
    memcpy(&head, session.down_payload + row.room, sizeof head);
    if ((head.pool & shm::kGrantOfSeveral) == 0) {
        if (index != 0) return DIBS_EUNITS;
        part = {head.pool, row.units, 0, row.lease, row.fence};
        return DIBS_OK;
    }
    shm::GrantParts parts = {};
    const uint64_t place = row.room + sizeof head + uint64_t{head.units} * head.stride;
    if (place + sizeof parts > area) return DIBS_ENOVALUE;
    memcpy(&parts, session.down_payload + place, sizeof parts);
    if (index >= parts.count || index >= DIBS_PARTS_MAX) return DIBS_EUNITS;
    const shm::GrantPart& found = parts.parts[index];
    if (uint64_t{found.first_unit} + found.units > row.units) return DIBS_ENOVALUE;
    part = {found.pool, found.units, found.first_unit, found.lease, found.fence};
    return DIBS_OK;
}

// "key=value" strings, each ended by a zero byte.
const char* find_attribute(const Region& region, const char* key) {
    const char* at = reinterpret_cast<const char*>(region.bytes) + sizeof region.slot;
    const char* end = at + region.slot.attributes_size;
    const size_t size = strlen(key);
    while (at < end) {
        const size_t length = strnlen(at, static_cast<size_t>(end - at));
        if (at + length == end) return nullptr;  // not ended: not ours
        if (length > size && memcmp(at, key, size) == 0 && at[size] == '=') return at + size + 1;
        at += length + 1;
    }
    return nullptr;
}

}  // namespace
}  // namespace dibs::client

using namespace dibs::client;

int dibs_release(dibs_session* session, const dibs_lease* lease, int64_t wait_ns) {
    return give_back(session, lease, wait_ns, dibs::shm::Op::kRelease);
}

int dibs_fail(dibs_session* session, const dibs_lease* lease, int64_t wait_ns) {
    return give_back(session, lease, wait_ns, dibs::shm::Op::kFail);
}

int dibs_keepalive(dibs_session* session,
                   const dibs_lease* lease,
                   int64_t interval_ns,
                   int64_t wait_ns,
                   int64_t* granted_ns) {
    int code = check_open(session);
    if (code != DIBS_OK) return code;
    if (lease == nullptr) return DIBS_EARGUMENT;
    if (interval_ns < 0 || wait_ns < 0) return DIBS_ENEGATIVE;
    // A holder that makes no other call must learn from it that the broker does not keep its lease
    // any more.
    const uint64_t now = monotonic_ns();
    session->look_whether_ended();
    if (wait_ns == 0) session->net_if_due(now);
    if (session->end_code != 0) return session->end_code;
    Tag* row = find_as_it_is(*session, *lease);
    if (row == nullptr && session->end_code != 0) return session->end_code;
    if (row != nullptr && row->fence != lease->fence) return other_fence(*row, *lease);
    if (row == nullptr && session->is_parked(*lease)) return DIBS_ALREADY_ENDED;
    if (row != nullptr && row->state == TagState::kOver) return DIBS_ALREADY_ENDED;
    if (row == nullptr && was_taken(*session, *lease)) return DIBS_ALREADY_ENDED;
    if (row == nullptr && wait_ns == 0) wait_ns = kAnswerTimeoutNs;
    const Told told = wait_ns == 0 ? Told::kNobody : Told::kResult;
    dibs::shm::Submission entry;
    entry.op = dibs::shm::Op::kKeepalive;
    entry.id = lease->id;
    entry.fence = lease->fence;
    dibs::shm::set_key_word(entry, static_cast<uint64_t>(interval_ns));
    uint32_t index = kNone;
    code = session->submit(entry, 0, told, index);
    if (code != DIBS_OK) return code;
    if (told == Told::kNobody) {
        // What was granted before is what the pool allows; less may have been asked for now.
        const auto asked = static_cast<uint64_t>(interval_ns);
        row = find(*session, *lease);  // making room may have brought its end
        if (row != nullptr && row->interval_ns != 0 &&
            row->event_seen != dibs::shm::LeaseEvent::kRevoking) {
            const bool less = interval_ns != 0 && asked < row->interval_ns;
            row->until_ns = now + (less ? asked : row->interval_ns);
        }
        session->publish();
        return DIBS_OK;
    }
    session->answers[index].lease = *lease;
    session->answers[index].sent_ns = now;
    session->publish();
    dibs_completion out = {};
    code = session->await_answer(index, wait_ns, out);
    if (code != DIBS_OK) return code;
    if (out.code == DIBS_ENOTHOLDER) session->last_holder = out.holder;
    if (out.code == DIBS_OK && granted_ns != nullptr) *granted_ns = out.interval_ns;
    return out.code;
}

// A holder that makes no other call learns here, too, that its lease is gone.
int dibs_touch(dibs_session* session, const dibs_lease* lease) {
    int code = check_open(session);
    if (code != DIBS_OK) return code;
    const uint64_t now = ticks();
    if (!session->still_open(now)) return session->end_code;
    Tag* row = nullptr;
    code = look_up(session, lease, row);
    if (code == DIBS_OK) {
        (void)session->look_at_event(lease->tag);
        code = look_up(session, lease, row);
    }
    if (code != DIBS_OK) return code;
    if (row->state == TagState::kOver) return DIBS_ALREADY_ENDED;
    if (!row->by_word) return DIBS_ESTATE;
    if (row->event_seen != dibs::shm::LeaseEvent::kNone) {
        return row->end_code != DIBS_OK ? row->end_code : DIBS_EEXPIRED;
    }
    std::atomic<uint64_t>& word = session->touch_words[lease->tag].touches;
    word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    row->touched_ticks = now;
    return DIBS_OK;
}

int dibs_adopt(
    dibs_session* session, uint64_t id, uint64_t fence, int64_t wait_ns, dibs_lease* lease) {
    int code = check_open(session);
    if (code != DIBS_OK) return code;
    if (lease == nullptr || wait_ns == 0) return DIBS_EARGUMENT;
    if (wait_ns < 0) return DIBS_ENEGATIVE;
    uint32_t index = kNone;
    code = session->submit_adoption(id, fence, index);
    if (code != DIBS_OK) return code;
    session->publish();
    dibs_completion out = {};
    code = session->await_answer(index, wait_ns, out);
    if (code != DIBS_OK) return code;
    if (out.code == DIBS_OK) *lease = out.lease;
    return out.code;
}

int dibs_last_holder(dibs_session* session, dibs_holder* holder) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (holder == nullptr) return DIBS_EARGUMENT;
    *holder = session->last_holder;
    return DIBS_OK;
}

int dibs_lease_state(dibs_session* session, const dibs_lease* lease, int* reason) {
    Tag* row = nullptr;
    int code = look_up(session, lease, row);
    if (code == DIBS_OK) {
        session->look_whether_ended();
        (void)session->look_at_event(lease->tag);
        code = look_up(session, lease, row);
    }
    if (code == DIBS_ALREADY_ENDED) {  // as a number it is a state, too, and not this one
        const bool told = waits_again(*session, *lease);
        if (reason != nullptr) *reason = told ? session->tags[lease->tag].end_code : code;
        return DIBS_ENDED;
    }
    if (code != DIBS_OK) return code;
    if (reason != nullptr) *reason = row->end_code;
    if (row->state != TagState::kLive) return DIBS_ENDED;
    return row->event_seen != dibs::shm::LeaseEvent::kNone ? DIBS_IN_GRACE : DIBS_LIVE;
}

int dibs_lease_remaining(dibs_session* session, const dibs_lease* lease, int64_t* left_ns) {
    Tag* row = nullptr;
    const int code = look_up(session, lease, row);
    if (code != DIBS_OK) return code;
    if (left_ns == nullptr) return DIBS_EARGUMENT;
    if (row->state == TagState::kOver) return DIBS_ALREADY_ENDED;
    if (row->interval_ns == 0 && row->event_seen != dibs::shm::LeaseEvent::kRevoking) {
        *left_ns = DIBS_FOREVER;
        return DIBS_OK;
    }
    const uint64_t now = monotonic_ns();
    uint64_t left = row->until_ns > now ? row->until_ns - now : 0;
    if (row->touched_ticks != 0 && row->event_seen == dibs::shm::LeaseEvent::kNone) {
        const uint64_t since = session->tick.to_ns(ticks() - row->touched_ticks);
        const uint64_t least = row->interval_ns > since ? row->interval_ns - since : 0;
        if (least > left) left = least;
    }
    *left_ns = static_cast<int64_t>(left);
    return DIBS_OK;
}

int dibs_lease_slot(dibs_session* session,
                    const dibs_lease* lease,
                    uint32_t unit,
                    dibs_slot* slot) {
    Tag* row = nullptr;
    int code = look_up_room(session, lease, row);
    if (code != DIBS_OK) return code;
    if (slot == nullptr) return DIBS_EARGUMENT;
    Region region;
    code = find_region(*session, lease->tag, unit, region);
    if (code != DIBS_OK) return code;
    *slot = {};
    slot->number = region.slot.number;
    slot->attributes_size = region.slot.attributes_size;
    slot->attributes = reinterpret_cast<const char*>(region.bytes) + sizeof region.slot;
    if (region.answer_size != 0) {
        slot->answer = region.answer;
        slot->answer_size = region.answer_size;
    }
    return DIBS_OK;
}

int dibs_lease_attribute(dibs_session* session,
                         const dibs_lease* lease,
                         uint32_t unit,
                         const char* key,
                         const char** value) {
    Tag* row = nullptr;
    int code = look_up_room(session, lease, row);
    if (code != DIBS_OK) return code;
    if (key == nullptr || value == nullptr) return DIBS_EARGUMENT;
    Region region;
    code = find_region(*session, lease->tag, unit, region);
    if (code != DIBS_OK) return code;
    const char* found = find_attribute(region, key);
    if (found == nullptr) return DIBS_ENOVALUE;
    *value = found;
    return DIBS_OK;
}

int dibs_lease_answer(dibs_session* session,
                      const dibs_lease* lease,
                      uint32_t unit,
                      const void** answer,
                      size_t* answer_size) {
    if (answer == nullptr || answer_size == nullptr) return DIBS_EARGUMENT;
    dibs_slot slot = {};
    const int code = dibs_lease_slot(session, lease, unit, &slot);
    if (code != DIBS_OK) return code;
    if (slot.answer == nullptr) return DIBS_ENOVALUE;
    *answer = slot.answer;
    *answer_size = slot.answer_size;
    return DIBS_OK;
}

int dibs_lease_part(dibs_session* session,
                    const dibs_lease* lease,
                    uint32_t index,
                    dibs_part* part) {
    Tag* row = nullptr;
    const int code = look_up_room(session, lease, row);
    if (code != DIBS_OK) return code;
    if (part == nullptr) return DIBS_EARGUMENT;
    return find_part(*session, *row, index, *part);
}
