// broker/core/recovery/invariants.cpp -- states what holds over all rows and what is derived_.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/invariants.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>
#include <utility>

#include "broker/core/ledger/invariants.hpp"
#include "broker/core/match/invariants.hpp"

namespace dibs::core {

using shm::ClaimState;
using shm::LeaseState;
using shm::SessionState;

namespace {

struct StoredCount {
    const char* of;
    size_t counted;  // SlotState or PoolCount
    uint32_t shm::PoolRow::*stored;
};

constexpr std::array kStoredCounts = {
    StoredCount{"idle", static_cast<size_t>(SlotState::kIdle), &shm::PoolRow::idle},
    StoredCount{"reserved", static_cast<size_t>(SlotState::kReserved), &shm::PoolRow::reserved},
    StoredCount{"parked leases", kParkedLeases, &shm::PoolRow::parked},
    StoredCount{"leased", static_cast<size_t>(SlotState::kLeased), &shm::PoolRow::leased},
    StoredCount{
        "recovering", static_cast<size_t>(SlotState::kRecovering), &shm::PoolRow::recovering},
    StoredCount{"unknown", static_cast<size_t>(SlotState::kUnknown), &shm::PoolRow::unknown},
    StoredCount{"shared", static_cast<size_t>(SlotState::kShared), &shm::PoolRow::shared},
    StoredCount{"parts", kParts, &shm::PoolRow::parts},
    StoredCount{"drained slots", kDrainedSlots, &shm::PoolRow::drained},
    StoredCount{"waiting", kWaitingClaims, &shm::PoolRow::waiting},
    StoredCount{"confirming", kConfirmingClaims, &shm::PoolRow::confirming},
    StoredCount{"unconfirmed", kUnconfirmedSlots, &shm::PoolRow::unconfirmed},
};

template <class Row>
void free_list(const Subject& it, const Rows<Row>& rows, uint32_t head, uint32_t count) {
    uint32_t found = 0;
    uint32_t row = head;
    for (; row < rows.size() && found < rows.size(); row = rows[row].head.free_next) {
        rows.fetch(row + kCheckAhead);  // what was never in use stands in its order
        it.expect(static_cast<int>(rows[row].state) == 0, "has a free row that is in use");
        ++found;
    }
    it.expect(row == kNoRow, "has a free list that does not end");
    it.expect_count("free rows", found, count);
}

void tagged(const Subject& it, const std::vector<uint32_t>& tags, uint16_t tag, uint32_t holder) {
    it.expect(tag < tags.size() && tags[tag] == holder, "is not under its tag");
}

}  // namespace

void DerivedInvariants::pool(uint32_t row) const {
    const shm::PoolRow& pool = parts.state.pools[row];
    Subject(wrongs, "pool", name_of(pool))
        .expect_count("seats", parts.backlog.taken(row), pool.waiting);
}

void DerivedInvariants::claim(uint32_t row) const {
    const shm::ClaimRow& claim = parts.state.claims[row];
    if (claim.state == ClaimState::kFree || claim.state == ClaimState::kRunning) return;
    if (claim.session == kNoRow) return;
    tagged({wrongs, "claim", claim.arrival},
           parts.tags[claim.session],
           claim.tag,
           parts.first_claim(row));
}

void DerivedInvariants::lease(uint32_t row) const {
    const shm::LeaseRow& lease = parts.state.leases[row];
    if (lease.state == LeaseState::kFree) return;
    tagged({wrongs, "lease of claim", lease.arrival},
           parts.tags[lease.session],
           lease.tag,
           parts.first_lease(row) | kTagLease);
}

void Invariants::leases(uint32_t begin, uint32_t end) {
    for (uint32_t row = begin; row < end; ++row)
        derived_.lease(row);
}

Wrongs Invariants::check(RowCounts counts, bool free_claims_sound) {
    counts_ = std::move(counts);
    assert(counts_.pools.size() == state_.counters->pools);
    assert(counts_.sessions.size() == state_.sessions.size());
    counts_.wrongs.insert(counts_.wrongs.end(), wrongs_.begin(), wrongs_.end());
    wrongs_.swap(counts_.wrongs);
    claims(free_claims_sound);
    tables(free_claims_sound);
    if (!wrongs_.empty()) return std::move(wrongs_);  // lists of broken rows may not end
    pools();
    sessions();
    arena();
    totals();
    if (parts_.book) check_book(parts_, &wrongs_);
    check_vectors(parts_, &wrongs_);
    return std::move(wrongs_);
}

// A free list that ends after as many rows as are counted has named so many rows, each of them
// free: once all rows in use have been met, what follows in the table has been looked at already.
void Invariants::claims(bool free_claims_sound) {
    const uint32_t rows = state_.claims.size();
    assert(!free_claims_sound || state_.counters->claims_free <= rows);
    const uint32_t in_use = free_claims_sound ? rows - state_.counters->claims_free : rows;
    for (uint32_t row = 0; row < rows && live_claims_.size() < in_use; ++row) {
        if (state_.claims[row].state == ClaimState::kFree) continue;
        live_claims_.push_back(row);
        of_rows().claim(row);
        derived_.claim(row);
        counts_.claim(state_, row);
    }
}

// A row of a table is either in use, or in the list of free ones, which is as long as is counted.
void Invariants::tables(bool free_claims_sound) {
    const shm::CountersRow& counters = *state_.counters;
    const auto table = [&](const char* name, const auto& rows, uint64_t live, uint64_t free) {
        Subject(&wrongs_, name).expect_count("rows", live + free, rows.size());
        return Subject(&wrongs_, name);
    };
    const auto live = [](const auto& rows) {
        const auto* first = &rows[0];
        return static_cast<uint64_t>(std::count_if(first, first + rows.size(), [](const auto& row) {
            return static_cast<int>(row.state) != 0;
        }));
    };
    free_list(table("slot", state_.slots, counts_.tables[kLiveSlots], counters.slots_free),
              state_.slots,
              counters.slots_free_head,
              counters.slots_free);
    free_list(table("lease", state_.leases, counts_.tables[kLiveLeases], counters.leases_free),
              state_.leases,
              counters.leases_free_head,
              counters.leases_free);
    free_list(table("session", state_.sessions, live(state_.sessions), counters.sessions_free),
              state_.sessions,
              counters.sessions_free_head,
              counters.sessions_free);
    free_list(table("application", state_.apps, live(state_.apps), counters.apps_free),
              state_.apps,
              counters.apps_free_head,
              counters.apps_free);
    free_list(table("group", state_.groups, live(state_.groups), counters.groups_free),
              state_.groups,
              counters.groups_free_head,
              counters.groups_free);
    free_list(table("task", state_.tasks, live(state_.tasks), counters.tasks_free),
              state_.tasks,
              counters.tasks_free_head,
              counters.tasks_free);
    table("claim", state_.claims, live_claims_.size(), counters.claims_free)
        .expect(free_claims_sound, "has a list of other free rows than are counted");
}

void Invariants::pools() {
    for (uint32_t row = 0; row < counts_.pools.size(); ++row) {
        const shm::PoolRow& pool = state_.pools[row];
        const auto& counts = counts_.pools[row];
        const Subject it(&wrongs_, "pool", name_of(pool));
        of_rows().pool(row);
        derived_.pool(row);
        for (const StoredCount& count : kStoredCounts)
            it.expect_count(count.of, counts[count.counted], pool.*count.stored);
        it.expect_count(
            "slots under leases", counts[kUnitsLeased], pool.leased + counts[kKilledSlots]);
        it.expect_count("ordered",
                        counts[static_cast<size_t>(SlotState::kOrdered)],
                        state_.elastics[row].ordered);
        it.expect_count("accepted and requeued claims",
                        pool.granted_total + pool.expired_total + pool.cancelled_total +
                            pool.rejected_total + pool.waiting + pool.confirming +
                            counts[kHeldClaims],
                        pool.accepted_total + pool.requeued_total + counts[kAsks]);
        it.expect_count("collected slots", counts[kCollectedSlots], parts_.collected[row]);
        ready_queue(row);
        backlog(row);
        expired_leases(row);
    }
}

// Soundness has walked it: idle slots in their order.
void Invariants::ready_queue(uint32_t row) {
    const shm::PoolRow& pool = state_.pools[row];
    const Subject it(&wrongs_, "pool", name_of(pool));
    uint32_t found = 0;
    uint32_t previous = kNoRow;
    for (uint32_t slot = pool.ready_head; slot != kNoRow; slot = state_.slots[slot].ready_next) {
        it.expect(previous == kNoRow || state_.slots[slot].ready_prev == previous,
                  "has a ready queue whose links differ");
        previous = slot;
        ++found;
    }
    it.expect(previous == pool.ready_tail, "has a ready queue with another tail");
    it.expect_count("ready queue", found, pool.idle);
}

void Invariants::backlog(uint32_t row) {
    const shm::PoolRow& pool = state_.pools[row];
    const Subject it(&wrongs_, "pool", name_of(pool));
    uint32_t waiting = 0;
    uint64_t last = 0;
    for (uint32_t at = parts_.backlog.head(row); at != kNoRow && waiting <= pool.waiting;
         at = parts_.backlog.next(at)) {
        const shm::ClaimRow& claim = state_.claims[at];
        it.expect((claim.state == ClaimState::kWaiting || claim.state == ClaimState::kPromised) &&
                      claim.arrival > last,
                  "has a backlog that is out of order");
        last = claim.arrival;
        ++waiting;
    }
    it.expect_count("backlog", waiting, pool.waiting);
    it.expect(parts_.backlog.missing_seat(row) == kNoRow, "has a waiting claim that sits wrong");
}

void Invariants::expired_leases(uint32_t row) {
    const Subject it(&wrongs_, "pool", name_of(state_.pools[row]));
    const uint32_t expired = counts_.pools[row][kExpiredLeases];
    uint32_t found = 0;
    std::pair<uint64_t, uint64_t> last;
    for (uint32_t at = parts_.expired_leases.head(row); at != kNoRow && found <= expired;
         at = parts_.expired_leases.next(at)) {
        const shm::LeaseRow& lease = state_.leases[at];
        const std::pair place{lease.expires_ns, lease.arrival};
        it.expect(lease.state == LeaseState::kExpired && last < place,
                  "has a list of expired leases that is out of order");
        last = place;
        ++found;
    }
    it.expect_count("expired leases", found, expired);
}

void Invariants::sessions() {
    for (uint32_t row = 0; row < counts_.sessions.size(); ++row) {
        const shm::SessionRow& session = state_.sessions[row];
        if (session.state == SessionState::kFree) continue;
        const auto& counts = counts_.sessions[row];
        const Subject it(&wrongs_, "session row", row);
        it.expect_count("claims", counts[kClaimsOf], session.claims);
        it.expect_count("leases", counts[kLeasesOf], session.leases);
        it.expect_count("slots", counts[kSlotsOf], session.slots);
        const std::vector<uint32_t>& tags = parts_.tags[row];
        const auto free = std::count(tags.begin(), tags.end(), kTagFree);
        it.expect_count("tags",
                        tags.size() - static_cast<size_t>(free),
                        uint64_t{counts[kClaimsOf]} + counts[kLeasesOf] - counts[kFurtherOf]);
    }
}

// Returns the chain's last block.
uint32_t Invariants::mark_chain(uint32_t chain, uint32_t bytes, const Subject& whose) {
    uint32_t last = kNoRow;
    for (uint32_t left = chain == kNoRow ? 0 : Arena::blocks_for(bytes); left > 0; --left) {
        whose.expect(chain < state_.arena.size(), "has a chain that ends early");
        if (chain >= state_.arena.size()) return kNoRow;
        last = chain;
        state_.arena.fetch(chain + kCheckAhead);
        whose.expect(block_used_[chain] == 0, "shares an arena block");
        block_used_[chain] = 1;
        chain = state_.arena[chain].next;
    }
    return last;
}

// Each block is of one text, or of one of the two lists.
void Invariants::arena() {
    const shm::CountersRow& counters = *state_.counters;
    block_used_.assign(state_.arena.size(), 0);
    constexpr uint32_t kBlock = sizeof(shm::ArenaBlock::bytes);
    const Subject free(&wrongs_, "the arena's free list");
    const Subject freed(&wrongs_, "the arena's freed list");
    mark_chain(counters.arena_free_head, counters.arena_free * kBlock, free);
    const uint32_t last =
        mark_chain(counters.arena_freed_head, counters.arena_freed * kBlock, freed);
    free.expect((counters.arena_free == 0) == (counters.arena_free_head == kNoRow),
                "has blocks that are not counted, or the reverse");
    freed.expect((counters.arena_freed == 0) == (counters.arena_freed_head == kNoRow),
                 "has blocks that are not counted, or the reverse");
    freed.expect(counters.arena_freed == 0 || last == counters.arena_freed_tail,
                 "ends at another block");
    std::vector<uint32_t> held(state_.sessions.size());
    for (const uint32_t row : live_claims_) {
        const shm::ClaimRow& claim = state_.claims[row];
        const Subject it(&wrongs_, "claim", claim.arrival);
        if (claim.session == kNoRow) continue;  // it brings nothing
        held[claim.session] += Arena::blocks_for(claim.payload_size);
        mark_chain(claim.payload, claim.payload_size, it);
        held[claim.session] += Arena::blocks_for(claim.meta_size);
        mark_chain(claim.meta, claim.meta_size, it);
        mark_chain(carried_cost(parts_, claim), sizeof(Cost), it);
    }
    for (uint32_t row = 0; row < state_.leases.size(); ++row) {
        const shm::LeaseRow& lease = state_.leases[row];
        const ArenaText meta = meta_of(lease);
        if (lease.state == shm::LeaseState::kFree || meta.chain == kNoRow) continue;
        held[lease.session] += Arena::blocks_for(meta.size);
        mark_chain(meta.chain, meta.size, {&wrongs_, "lease of claim", lease.arrival});
    }
    for (const uint32_t row : counts_.slots_with_text) {
        const shm::SlotRow& slot = state_.slots[row];
        if (slot.session != kNoRow) held[slot.session] += Arena::blocks_for(slot.attributes_size);
        mark_chain(slot.attributes, slot.attributes_size, {&wrongs_, "slot row", row});
    }
    for (uint32_t row = 0; row < state_.counters->pools; ++row) {
        const shm::PoolRow& pool = state_.pools[row];
        if (!has_resources(pool)) continue;
        mark_chain(pool.resources, pool.resources_size, {&wrongs_, "pool", name_of(pool)});
    }
    for (uint32_t row = 0; row < state_.accounts.size(); ++row) {
        const shm::AccountRow& account = state_.accounts[row];
        if (account.state == 0) continue;
        mark_chain(account.label_limits,
                   account.label_limits_size,
                   {&wrongs_, "account", name_of(account)});
    }
    for (uint32_t row = 0; row < state_.label_sets.size(); ++row) {
        const shm::LabelSetRow& set = state_.label_sets[row];
        if (set.references != 0) mark_chain(set.text, set.text_size, {&wrongs_, "label set", row});
    }
    for (uint32_t row = 0; row < state_.apps.size(); ++row) {
        const shm::AppRow& app = state_.apps[row];
        if (app.state == shm::AppState::kFree) continue;
        mark_chain(app.tags, app.tags_size, {&wrongs_, "application", name_of(app)});
    }
    const Subject it(&wrongs_, "arena");
    it.expect(held == parts_.arena_held, "is held by other sessions than is counted");
    it.expect_count("blocks",
                    std::accumulate(block_used_.begin(), block_used_.end(), uint64_t{0}),
                    state_.arena.size());
}

void Invariants::totals() {
    uint64_t confirming = counts_.tables[kPromisedClaims];
    for (const auto& pool : counts_.pools)
        confirming += pool[kConfirmingClaims];
    const Subject it(&wrongs_, "all");
    const auto several = std::count_if(live_claims_.begin(), live_claims_.end(), [&](uint32_t row) {
        const shm::ClaimRow& claim = state_.claims[row];
        return is_several(claim) && claim.state == ClaimState::kWaiting;
    });
    it.expect_count("rows that wait in several pools",
                    static_cast<uint64_t>(several),
                    parts_.SeveralPools::waiting);
    it.expect_count("confirming claims", confirming, parts_.confirming_total);
    it.expect_count("timers", counts_.tables[kTimers], parts_.timers.size());
    it.expect_count("kept slots", counts_.tables[kKeptSlots], parts_.kept_slots.size());
    it.expect_count("keys", counts_.tables[kKeys], parts_.keys.size());
    it.expect_count("slot names", counts_.tables[kSlotNames], parts_.names.size());
}

}  // namespace dibs::core
