// clientlib/pool_set.cpp -- claims from a pool set: from the first of its members that has a slot.
//
// A set is nothing but a row of the BOARD that names its members. A claim of it is claims of them:
// first one after the other, each for a slot now; then, if none had one, one that waits in each.
// So it has its place in the order of arrival of each member, and nobody is overtaken: neither by
// it, nor it by claims of a member that came later. All of them are this session's, so its end, or
// the process's death, ends them.
//
// Nothing of the set is kept beyond the call. The row's sequence is the members' version: a wait
// that wakes, which it does each 100 ms, compares it and reads the members again.
//
//   member:  wanted ── claimed ──► waiting ── granted ──► the end, or given back
//               │ ▲                   ├── ended otherwise ──► not wanted
//               │ └── a new member    └── no member any more ──► (gone)
//               └── answered at first, and not busy ──► not wanted
// SPDX-License-Identifier: Apache-2.0
#include "clientlib/pool_set.hpp"

#include <string.h>

#include "clientlib/offer_amounts.hpp"
#include "shm/board.hpp"
#include "shm/operation.hpp"

namespace dibs::client {
namespace {

// A set's number: the bit, how often its row had become another set's, the row.

uint32_t number_of(uint32_t row, uint32_t use) {
    return DIBS_POOL_SET | (use << shm::kSetRowBits & ~DIBS_POOL_SET) | row;
}

const shm::BoardSet& set_row(const Session& session, uint32_t set) {
    const uint64_t array = shm::plan_board(session.pools_max).sets;
    return shm::board_array<const std::byte, const shm::BoardSet>(session.board,
                                                                  array)[set % shm::kSetsMax];
}

int64_t left_of(uint64_t until_ns) {
    if (until_ns == shm::kNever) return DIBS_FOREVER;
    const uint64_t now = monotonic_ns();
    return until_ns > now ? static_cast<int64_t>(until_ns - now) : 0;
}

bool has_key(const dibs_claim_options& options) {
    constexpr uint8_t kNoKey[sizeof options.key] = {};
    return memcmp(options.key, kNoKey, sizeof kNoKey) != 0;
}

// An offer is accepted now or not at all.
bool may_wait(const dibs_claim_options& options) {
    return options.timeout_ns != 0 && options.offer == nullptr &&
           (options.when_busy == DIBS_BUSY_AS_POOL || options.when_busy == DIBS_BUSY_WAIT);
}

// Nobody was asked: no member is there, or none is of the pool that an offer names.
dibs_completion no_member(int code) {
    dibs_completion end = {};
    end.kind = DIBS_CLAIM_ENDED;
    end.outcome = DIBS_REJECTED;
    end.code = code;
    return end;
}

dibs_completion expired() {
    dibs_completion end = {};
    end.kind = DIBS_CLAIM_ENDED;
    end.outcome = DIBS_EXPIRED;
    return end;
}

}  // namespace

int find_set(const Session& session, const char* name, uint32_t* set) {
    for (uint32_t row = 0; row < shm::kSetsMax; ++row) {
        shm::SetPicture picture;
        if (!shm::board_read(set_row(session, row), picture)) return DIBS_ETORN;
        picture.name[sizeof picture.name - 1] = 0;
        if (picture.members == 0 || strcmp(picture.name, name) != 0) continue;
        *set = number_of(row, picture.use);
        return DIBS_OK;
    }
    return DIBS_EPOOL;
}

bool set_has_changed(const Session& session) {
    const SetWait& wait = *session.set_wait;
    // Pairs with nothing: board_read looks again. What is half written is a broker's that may have
    // died in it: the next one writes it.
    const uint64_t now = set_row(session, wait.set).sequence.load(std::memory_order_relaxed);
    return now != wait.version && (now & 1) == 0;
}

SetWait::Member* member_of_tag(const Session& session, uint32_t tag) {
    return session.set_wait != nullptr ? session.set_wait->of_tag(tag) : nullptr;
}

void take_set_end(Session& session, SetWait::Member& member, const dibs_completion& end) {
    SetWait& wait = *session.set_wait;
    const uint32_t tag = member.tag;
    member.tag = kNone;
    member.wanted = false;
    --wait.waiting;
    if (!wait.decided) {
        wait.end = end;
        wait.decided = end.outcome == DIBS_GRANTED || end.outcome == DIBS_CANCELLED ||
                       end.outcome == DIBS_BROKER_LOST;
    } else if (end.outcome == DIBS_GRANTED) {
        session.tags[tag].release_owed = true;
        ++session.owed;
    }
}

namespace {

void leave(Session& session, SetWait& wait, SetWait::Member& member) {
    const uint32_t tag = member.tag;
    if (tag == kNone) return;
    member.tag = kNone;
    --wait.waiting;
    session.abandon(tag);
}

// Members as they are now; the claims of those that are none any more are ended. DIBS_EPOOL.
int read_members(Session& session, SetWait& wait) {
    shm::SetPicture picture;
    if (!shm::board_read(set_row(session, wait.set), picture)) return DIBS_ETORN;
    const SetWait before = wait;
    wait.version = picture.sequence;
    wait.by_load = picture.rank == shm::SetRank::kLoad;
    wait.members = 0;
    const bool is_it = number_of(wait.set % shm::kSetsMax, picture.use) == wait.set;
    const uint32_t most = shm::kSetMembersMax;
    const uint32_t count = picture.members < most ? picture.members : most;
    for (uint32_t at = 0; is_it && at < count; ++at) {
        SetWait::Member& member = wait.member[wait.members++];
        member = {};
        member.pool = picture.pool[at];
        member.wanted = picture.pool[at] != shm::kNoPool;
        for (uint32_t old = 0; old < before.members; ++old) {
            if (before.member[old].pool == member.pool) member = before.member[old];
        }
    }
    for (uint32_t old = 0; old < before.members; ++old) {
        SetWait::Member gone = before.member[old];
        if (wait.of_tag(gone.tag) == nullptr) leave(session, wait, gone);
    }
    return wait.members != 0 ? DIBS_OK : DIBS_EPOOL;
}

bool is_for_want_of_room(int code) {
    return code == DIBS_EFULL || code == DIBS_ELIMIT || code == DIBS_EUNREAD;
}

// A claim in each member that is wanted and has none; with a key in one. *all is false if there was
// no room for some: those that wait go on, and the others are tried again.
int join_members(Session& session,
                 SetWait& wait,
                 const dibs_claim_options& options,
                 uint64_t until_ns,
                 bool* all) {
    dibs_claim_options waiting = options;
    int code = DIBS_OK;
    for (uint32_t at = 0; at < wait.members && !wait.decided; ++at) {
        SetWait::Member& member = wait.member[at];
        if (!member.wanted || member.tag != kNone) continue;
        if (wait.waiting != 0 && has_key(options)) break;
        waiting.timeout_ns = left_of(until_ns);
        uint32_t tag = kNone;
        code = session.submit_claim(member.pool, waiting, 0, tag);
        if (code != DIBS_OK) break;
        session.tags[tag].asked_ticks = ticks();
        member.tag = tag;
        ++wait.waiting;
    }
    session.publish();
    *all = code == DIBS_OK;
    return is_for_want_of_room(code) && wait.waiting != 0 ? DIBS_OK : code;
}

// `over_ns` is when the broker's word on the end at `until_ns` is waited for no longer.
int wait_in_members(Session& session,
                    SetWait& wait,
                    const dibs_claim_options& options,
                    uint64_t until_ns,
                    uint64_t over_ns) {
    int code = DIBS_OK;
    while (code == DIBS_OK) {
        if (left_of(over_ns) == 0) {
            wait.end = expired();
            break;
        }
        bool all = true;
        code = join_members(session, wait, options, until_ns, &all);
        if (code != DIBS_OK || wait.waiting == 0 || wait.decided) break;
        const int64_t left_ns = left_of(over_ns);
        const bool woken =
            Wait(session, all || left_ns < kNetNs ? left_ns : kNetNs).until(Awaited::kSet);
        if (!woken || wait.decided || wait.waiting == 0) continue;
        code = set_has_changed(session) ? read_members(session, wait) : DIBS_EUNREAD;
    }
    for (uint32_t at = 0; at < wait.members; ++at)
        leave(session, wait, wait.member[at]);
    if (wait.decided) return DIBS_OK;
    if (code != DIBS_EPOOL) return code;
    wait.end = no_member(DIBS_EPOOL);
    return DIBS_OK;
}

// One claim, which the broker gives to a member.
int claim_by_load(Session& session,
                  const SetWait& wait,
                  const dibs_claim_options& options,
                  dibs_completion& end) {
    const int code = session.claim_of_pool(wait.set, options, with_margin(options.timeout_ns), end);
    if (end.code == DIBS_ENOTFOUND) end.code = DIBS_EDRAINING;  // no member takes claims
    return code;
}

}  // namespace

bool is_ranked_by_load(const Session& session, uint32_t set) {
    shm::SetPicture picture;
    return shm::board_read(set_row(session, set), picture) && picture.rank == shm::SetRank::kLoad &&
           number_of(set % shm::kSetsMax, picture.use) == set;
}

uint32_t learn_pool(Session& session, uint32_t tag, const shm::Completion& completion) {
    Tag& row = session.tags[tag];
    if (completion.outcome != shm::Outcome::kGranted) return completion.units;
    shm::GrantHead head = {};
    const uint64_t area = session.sizes.down_payload;
    if (row.room >= area || area - row.room < sizeof head) return row.pool;
    memcpy(&head, session.down_payload + row.room, sizeof head);
    return row.pool = head.pool;
}

int claim_of_set(Session& session,
                 uint32_t set,
                 const dibs_claim_options& options,
                 dibs_completion& end) {
    if (options.timeout_ns < 0) return DIBS_ENEGATIVE;
    const uint64_t until_ns = options.timeout_ns == DIBS_FOREVER
                                  ? shm::kNever
                                  : monotonic_ns() + static_cast<uint64_t>(options.timeout_ns);
    const bool ends = until_ns < shm::kNever - uint64_t{kOutcomeMarginNs};
    const uint64_t over_ns = ends ? until_ns + uint64_t{kOutcomeMarginNs} : shm::kNever;
    SetWait wait;
    wait.set = set;
    int code = read_members(session, wait);
    if (code != DIBS_OK) return code;
    if (wait.by_load && options.offer == nullptr) return claim_by_load(session, wait, options, end);
    dibs_claim_options now = options;
    now.timeout_ns = 0;
    dibs_completion busy = {};  // the first one's answer
    end = no_member(options.offer == nullptr ? DIBS_EPOOL : DIBS_EOFFEREXPIRED);
    for (uint32_t at = 0; at < wait.members; ++at) {
        SetWait::Member& member = wait.member[at];
        if (!member.wanted || check_offered(session, member.pool, options) != DIBS_OK) continue;
        const int64_t left_ns = left_of(over_ns);
        if (left_ns == 0) {
            end = busy.kind != 0 ? busy : expired();
            return DIBS_OK;
        }
        code = session.claim_of_pool(member.pool, now, left_ns, end);
        if (code != DIBS_OK) return code;
        member.wanted = end.outcome == DIBS_EXPIRED || end.code == DIBS_EBUSY;
        if (!member.wanted && end.outcome != DIBS_REJECTED) return DIBS_OK;
        if (member.wanted && busy.kind == 0) busy = end;
    }
    if (busy.kind == 0) return DIBS_OK;
    end = busy;
    if (!may_wait(options)) return DIBS_OK;
    session.set_wait = &wait;
    wait.end = busy;
    code = wait_in_members(session, wait, options, until_ns, over_ns);
    session.set_wait = nullptr;
    if (code != DIBS_OK) return code;
    end = wait.end;
    if (end.outcome == DIBS_EXPIRED) {
        end.pool = busy.pool;
        end.holder = busy.holder;
    }
    return DIBS_OK;
}

int check_pool(Session& session, uint32_t pool) {
    if (pool < session.pools_seen) return DIBS_OK;
    if ((pool & DIBS_POOL_SET) != 0) return is_ranked_by_load(session, pool) ? DIBS_OK : DIBS_EPOOL;
    const auto* head = reinterpret_cast<const shm::BoardHead*>(session.board);
    const uint32_t pools = head->pools.load(std::memory_order_acquire);
    session.pools_seen = pools < session.pools_max ? pools : session.pools_max;
    return pool < session.pools_seen ? DIBS_OK : DIBS_EPOOL;
}

int add_pools(Session& session, uint32_t pool, const dibs_claim_options& options, uint32_t& units) {
    if (options.also_count >= DIBS_PARTS_MAX || options.also == nullptr) return DIBS_EARGUMENT;
    for (size_t i = 0; i < options.also_count; ++i) {
        const dibs_pool_units& further = options.also[i];
        if (further.pool == pool || ((further.pool | pool) & DIBS_POOL_SET) != 0) {
            return DIBS_EARGUMENT;
        }
        for (size_t before = 0; before < i; ++before) {
            if (options.also[before].pool == further.pool) return DIBS_EARGUMENT;
        }
        const int code = check_pool(session, further.pool);
        if (code != DIBS_OK) return code;
        if (further.units > DIBS_UNITS_MAX) return DIBS_EUNITS;
        units += further.units == 0 ? 1 : further.units;
    }
    return units > DIBS_UNITS_MAX ? DIBS_EUNITS : DIBS_OK;
}

}  // namespace dibs::client
