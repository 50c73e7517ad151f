// broker/core/recovery/soundness.cpp -- validates the words of each row.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/soundness.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/core/match/account_book.hpp"
#include "broker/core/recovery/sound_elastic.hpp"
#include "broker/core/recovery/sound_gangs.hpp"
#include "broker/core/recovery/sound_several.hpp"
#include "broker/core/recovery/sound_text.hpp"
#include "broker/core/recovery/sound_vectors.hpp"
#include "broker/core/store/arena.hpp"
#include "broker/core/store/edit.hpp"
#include "broker/core/store/row_states.hpp"

namespace dibs::core {

namespace {

using shm::ClaimState;
using shm::kNoRow;
using shm::LeaseState;
using shm::SessionState;
using shm::SlotState;

template <class Enum>
bool within(Enum value, Enum last) {
    return static_cast<unsigned>(value) <= static_cast<unsigned>(last);
}

bool is_link(uint32_t row, uint32_t rows) {
    return row == kNoRow || row < rows;
}

// What only grows: behind its last number it would begin anew, but nothing runs for so long.
bool is_count(uint64_t number) {
    return number >> 62U == 0;
}

// How many rows ahead a named row is prefetched: the first slot of a lease, say, which may stand
// anywhere where leases have come and gone for long.
constexpr uint32_t kRowsAhead = 16;

std::string row_text(const char* table, uint32_t row, const char* what) {
    return std::string(table) + " row " + std::to_string(row) + what;
}

// What one row says, and whether the rows that it names agree.
class Words {
  public:
    explicit Words(const State& state) : state_(state) {}

    template <class Row>
    std::string first_unsound(const char* table, const Rows<Row>& rows) const {
        return first_unsound(table, rows, 0, rows.size());
    }

    template <class Row>
    std::string first_unsound(const char* table,
                              const Rows<Row>& rows,
                              uint32_t begin,
                              uint32_t end) const {
        for (uint32_t row = begin; row < end; ++row) {
            // Prefetches some lines of later rows of the two largest tables, and row_invariants.cpp
            // the others: all of them at once would be more than memory can deliver meanwhile.
            if constexpr (std::is_same_v<Row, shm::SlotRow> || std::is_same_v<Row, shm::LeaseRow>) {
                const uint32_t later = row + kPiecesAhead * (end - begin);
                rows.template fetch_line<0>(later);
                rows.template fetch_line<1>(later);
            } else if constexpr (requires { rows[row].state; }) {
                rows.fetch_behind(row);
            }
            if (!is_link(rows[row].head.free_next, rows.size()) || !sound(rows[row])) {
                return row_text(table, row, " leaves its tables");
            }
            if (!fits(rows[row], row)) {
                return row_text(table, row, " does not fit the rows that it names");
            }
        }
        return {};
    }

    bool sound_counters() const {
        const shm::CountersRow& counters = *state_.counters;
        const uint32_t blocks = state_.arena.size();
        return is_count(counters.arrival_next) && is_count(counters.turns) &&
               is_count(counters.time_ns) && is_count(counters.fence_base) &&
               counters.pools <= state_.pools.size() &&
               is_link(counters.claims_free_head, state_.claims.size()) &&
               is_link(counters.leases_free_head, state_.leases.size()) &&
               is_link(counters.slots_free_head, state_.slots.size()) &&
               is_link(counters.sessions_free_head, state_.sessions.size()) &&
               is_link(counters.apps_free_head, state_.apps.size()) &&
               is_link(counters.groups_free_head, state_.groups.size()) &&
               is_link(counters.tasks_free_head, state_.tasks.size()) &&
               is_link(counters.arena_free_head, blocks) && counters.arena_free <= blocks &&
               is_link(counters.arena_freed_head, blocks) &&
               is_link(counters.arena_freed_tail, blocks) && counters.arena_freed <= blocks;
    }

    // Attaching puts each of its slots once into the book of accounts, so none may stand there
    // twice; their growing order sees to that, and to an end.
    bool ready_queue(uint32_t row) const {
        const shm::PoolRow& pool = state_.pools[row];
        uint32_t previous = kNoRow;
        for (uint32_t at = pool.ready_head; at != kNoRow; at = state_.slots[at].ready_next) {
            const shm::SlotRow& slot = state_.slots[at];
            if (slot.state != SlotState::kIdle || slot.pool != row ||
                slot.idle_order >= pool.idle_order_next) {
                return false;
            }
            if (previous != kNoRow && slot.idle_order <= state_.slots[previous].idle_order) {
                return false;
            }
            previous = at;
        }
        return true;
    }

    // What is owed is what the rows give.
    bool pledge() const {
        const shm::LogHead& log = state_.head->log;
        const shm::CountersRow& counters = *state_.counters;
        if (log.pledged_turn != counters.turns + 1) return true;
        const shm::LogStore& store = state_.log_stores[0];
        shm::Completion told;
        std::memcpy(&told, store.entry, sizeof(told));
        if (log.phase.load(std::memory_order_relaxed) == shm::LogPhase::kCommitted ||
            store.kind != shm::LogStoreKind::kCompletion || !tagged(store.session, told.tag) ||
            log.pledged_pool >= counters.pools) {
            return false;
        }
        const shm::SessionRow& session = state_.sessions[store.session];
        const shm::PoolRow& pool = state_.pools[log.pledged_pool];
        const uint32_t lease = counters.leases_free_head;
        return session.state == SessionState::kOpen &&
               session.head.generation == store.generation &&
               session.completion_tail == store.position && pool.kind == shm::PoolKind::kCounted &&
               pool.order == shm::PoolOrder::kArrival && !has_resources(pool) && pool.idle != 0 &&
               pool.ready_head < state_.slots.size() && told.units == 1 &&
               counters.leases_free != 0 && lease < state_.leases.size() &&
               told.id == row_id(state_.leases[lease].head.generation, lease) &&
               told.fence == pool.fence_next + 1 && told.claim == counters.arrival_next;
    }

  private:
    // In most tables, a row whose words stay within the other tables has no other check.
    template <class Row>
    bool fits(const Row& /*row*/, uint32_t /*place*/) const {
        return true;
    }

    bool fits(const shm::ClaimRow& claim, uint32_t row) const {
        if (claim.state != ClaimState::kFree && is_several(claim)) {
            const bool may_be =
                claim.state == ClaimState::kWaiting || claim.state == ClaimState::kReserved;
            if (!may_be || !is_one_of_several(state_, state_.claims, row)) return false;
            const bool brings = key_given(claim.key) || claim.payload != kNoRow ||
                                claim.meta != kNoRow || claim.deadline_ns != shm::kNever;
            if (brings && is_further(claim, row)) return false;
        }
        if (claim.state == ClaimState::kReserved) {
            return holds(claim.first_slot, claim.units, row, SlotState::kReserved, claim.pool);
        }
        const bool running = claim.state == ClaimState::kRunning;
        if (!running && claim.state != ClaimState::kPromised) return true;
        if (state_.pools[claim.pool].order != shm::PoolOrder::kAccount) return false;
        if (running) return runs(claim);
        const shm::SlotRow& slot = state_.slots[claim.first_slot];
        return claim.units == 1 && slot.state != SlotState::kFree && slot.pool == claim.pool;
    }

    // Under a lease of its own. One that is taken may have lost slots since.
    bool runs(const shm::ClaimRow& claim) const {
        const shm::LeaseRow& lease = state_.leases[claim.lease];
        const bool taken = (lease.flags & shm::LeaseFlag::kTaken) != 0;
        return lease.state != LeaseState::kFree && lease.pool == claim.pool &&
               lease.arrival == claim.arrival && (taken || lease.units == claim.units);
    }

    bool fits(const shm::SlotRow& slot, uint32_t /*row*/) const { return sound_part(state_, slot); }

    bool fits(const shm::LeaseRow& lease, uint32_t row) const {
        if (state_.leases.size() - row > kRowsAhead) {
            const uint32_t soon = state_.leases[row + kRowsAhead].first_slot;
            if (soon < state_.slots.size()) __builtin_prefetch(&state_.slots[soon]);
        }
        if (lease.state == LeaseState::kFree) return true;
        const bool killing = lease.state == LeaseState::kKilling;
        if (is_several(lease)) {
            if (!is_one_of_several(state_, state_.leases, row)) return false;
            if (is_further(lease, row) && (key_given(lease.key) || lease.flags != 0)) return false;
            // All workers of this pool have gone since.
            if (killing && lease.units == 0) return lease.first_slot == kNoRow;
        }
        return holds(lease.first_slot,
                     lease.units,
                     row,
                     killing ? SlotState::kRecovering : SlotState::kLeased,
                     lease.pool);
    }

    // Exactly so many slots, each of them its own.
    bool holds(
        uint32_t first, uint32_t units, uint32_t holder, SlotState state, uint32_t pool) const {
        uint32_t at = first;
        for (uint32_t unit = 0; unit < units; ++unit) {
            if (at >= state_.slots.size()) return false;
            const shm::SlotRow& slot = state_.slots[at];
            if (slot.state != state || slot.holder != holder || slot.pool != pool) return false;
            at = slot.holder_next;
        }
        return units != 0 && at == kNoRow;
    }

    bool sound(const shm::PoolRow& pool) const {
        if (!within(pool.state, shm::PoolState::kGoing) || pool.parts > pool.slots) return false;
        return within(pool.kind, shm::PoolKind::kWorker) &&
               within(pool.order, shm::PoolOrder::kAccount) &&
               within(pool.when_busy, shm::WhenBusy::kCold) &&
               within(pool.mode, shm::ExpiryMode::kLazy) && pool.name_size < sizeof pool.name + 1 &&
               pool.required_label_size < sizeof pool.required_label + 1 &&
               is_link(pool.ready_head, state_.slots.size()) &&
               is_link(pool.ready_tail, state_.slots.size()) && pool.units_max <= shm::kUnitsMax &&
               pool.payload_max <= shm::kPayloadMax && is_count(pool.fence_next) &&
               pool.demand_published >= -1 && pool.demand_published <= 0xffffffffLL &&
               is_count(pool.idle_order_next) &&
               (pool.kind == shm::PoolKind::kCounted || pool.slots_wanted == 0) &&
               (!has_resources(pool) ||
                (whole_chain(pool.resources, pool.resources_size) &&
                 sound_resources(pool, text(pool.resources, pool.resources_size))));
    }

    bool sound(const shm::TypeRow& row) const { return sound_type(state_, row); }
    bool sound(const shm::ElasticRow& row) const { return sound_elastic(state_, row); }
    bool sound(const shm::EntryRow& row) const { return sound_entry(state_, row); }
    bool sound(const shm::GroupRow& row) const { return sound_group(state_, row); }
    bool sound(const shm::TaskRow& row) const { return sound_task(state_, row); }
    bool sound(const shm::AppRow& row) const {
        const bool in_use = row.state != shm::AppState::kFree;
        return sound_app(state_, row) && (!in_use || chain(row.tags, row.tags_size));
    }

    bool sound(const shm::SessionRow& row) const {
        return within(row.state, SessionState::kOutlived) && row.tags_max <= shm::kTagsMax &&
               (row.state == SessionState::kFree || is_account(row.account));
    }

    // A row of a session that is there, under a tag that it has.
    bool tagged(uint32_t session, uint16_t tag) const {
        return session < state_.sessions.size() &&
               state_.sessions[session].state != SessionState::kFree &&
               tag < state_.sessions[session].tags_max;
    }

    bool chain(uint32_t first, uint32_t size) const {
        if (first == kNoRow) return size == 0;
        return first < state_.arena.size() && size != 0 &&
               Arena::blocks_for(size) <= state_.arena.size();
    }

    // One that attaching reads: as long as it is said to be.
    bool whole_chain(uint32_t first, uint32_t size) const {
        if (!chain(first, size)) return false;
        uint32_t block = first;
        for (uint32_t left = Arena::blocks_for(size); left != 0 && first != kNoRow; --left) {
            if (block == kNoRow) return false;
            block = state_.arena[block].next;
        }
        return true;
    }

    // Of a whole chain.
    std::string text(uint32_t first, uint32_t size) const {
        std::string bytes;
        bytes.reserve(size);
        for (uint32_t block = first; bytes.size() < size; block = state_.arena[block].next) {
            const shm::ArenaBlock& from = state_.arena[block];
            const size_t left = size - bytes.size();
            bytes.append(reinterpret_cast<const char*>(from.bytes),
                         std::min(sizeof from.bytes, left));
        }
        return bytes;
    }

    bool sound(const shm::SlotRow& slot) const {
        if (slot.state == SlotState::kFree) return true;
        const uint32_t slots = state_.slots.size();
        // Recovering and held: under a lease whose holder is being killed.
        const bool leased =
            slot.state == SlotState::kLeased || slot.state == SlotState::kRecovering;
        const uint32_t holders = leased ? state_.leases.size() : state_.claims.size();
        return within(slot.state, SlotState::kOrdered) && slot.pool < state_.counters->pools &&
               is_link(slot.session, state_.sessions.size()) && is_link(slot.holder, holders) &&
               is_link(slot.holder_next, slots) && is_link(slot.ready_next, slots) &&
               is_link(slot.ready_prev, slots) && chain(slot.attributes, slot.attributes_size) &&
               slot.name_size < sizeof slot.name + 1 && is_link(slot.part_of, slots) &&
               sound_amounts(state_, slot) && sound_order(state_, slot) &&
               sound_dispatched(state_, slot) &&
               (is_dispatched(state_, slot.pool) || sound_placeholder(state_, slot)) &&
               (state_.pools[slot.pool].order != shm::PoolOrder::kAccount ||
                sound_to_account(slot));
    }

    // What is read in pools ordered by account alone. What a reported worker has not confirmed is a
    // lease.
    bool sound_to_account(const shm::SlotRow& slot) const {
        const bool assigned = (slot.flags & shm::SlotFlag::kAssigned) != 0;
        return is_label_set(slot.label_set) && (!assigned || (slot.state == SlotState::kLeased &&
                                                              slot.holder < state_.leases.size()));
    }

    bool sound(const shm::ClaimRow& claim) const {
        if (claim.state == ClaimState::kFree) return true;
        const bool is_ask = claim.session == kNoRow;  // which is nobody's, and has no tag
        return within(claim.state, ClaimState::kHeld) && claim.pool < state_.counters->pools &&
               !is_dispatched(state_, claim.pool) && sound_member(state_, claim) &&
               (is_ask || tagged(claim.session, claim.tag)) &&
               is_link(claim.first_slot, state_.slots.size()) && claim.units != 0 &&
               claim.units <= shm::kUnitsMax && claim.payload_size <= shm::kPayloadMax &&
               chain(claim.payload, claim.payload_size) && sound_meta(meta_of(claim)) &&
               (!wants_part(claim) || sound_want(state_, claim)) && sound_terms(claim);
    }

    // What has been paid, with or without the time by which a lease's cost is less: no sum of it
    // leaves its number.
    static bool is_paid(std::span<const int64_t> cost, int64_t least) {
        return std::all_of(cost.begin(), cost.end(), [least](int64_t paid) {
            return paid >= least && paid <= kMoneyMax;
        });
    }

    bool is_carried(uint32_t block) const {
        if (block == kNoRow) return true;
        if (block >= state_.arena.size()) return false;
        Cost cost;
        std::memcpy(cost.data(), state_.arena[block].bytes, sizeof(cost));
        return is_paid(cost, 0);
    }

    // What only pools ordered by account keep.
    bool sound_terms(const shm::ClaimRow& claim) const {
        if (state_.pools[claim.pool].order != shm::PoolOrder::kAccount) return true;
        const bool runs = claim.state == ClaimState::kRunning;
        const bool promised = claim.state == ClaimState::kPromised;
        return is_account(claim.account) && is_label_set(claim.label_set) &&
               is_label_set(claim.preferred_set) && is_carried(claim.carried_cost) &&
               (!runs || claim.lease < state_.leases.size()) &&
               (!promised || claim.first_slot < state_.slots.size()) && claim.account_class <= 5;
    }

    bool is_account(uint32_t row) const {
        return row == kNoRow || (row < state_.accounts.size() && state_.accounts[row].state != 0);
    }

    bool is_label_set(uint32_t row) const {
        return row == kNoRow ||
               (row < state_.label_sets.size() && state_.label_sets[row].references != 0);
    }

    bool sound(const shm::AccountRow& account) const {
        if (account.state == 0) return true;
        const auto is_money = [](int64_t balance) {
            return balance >= -kMoneyMax && balance <= kMoneyMax;
        };
        const auto is_rate = [&](int64_t rate) {
            return rate >= 0 && rate <= kRateMax &&
                   cap_of(rate, account.charge_max_ns) <= kMoneyMax;
        };
        return account.name_size < sizeof account.name + 1 &&
               std::all_of(std::begin(account.balance), std::end(account.balance), is_money) &&
               std::all_of(std::begin(account.rate), std::end(account.rate), is_rate) &&
               whole_chain(account.label_limits, account.label_limits_size) &&
               are_limits(text(account.label_limits, account.label_limits_size));
    }

    bool sound(const shm::LabelSetRow& set) const {
        if (set.references == 0) return true;
        return set.text_size != 0 && whole_chain(set.text, set.text_size) && set.count != 0 &&
               set.count == labels_in(text(set.text, set.text_size));
    }

    bool sound_meta(ArenaText meta) const {
        return meta.size <= shm::kMetaMax && chain(meta.chain, meta.size);
    }

    bool sound(const shm::LeaseRow& lease) const {
        if (lease.state == LeaseState::kFree) return true;
        return within(lease.state, LeaseState::kKilling) &&
               within(lease.mode, shm::ExpiryMode::kLazy) && lease.pool < state_.counters->pools &&
               !is_dispatched(state_, lease.pool) && tagged(lease.session, lease.tag) &&
               is_link(lease.first_slot, state_.slots.size()) && takes_of(lease) <= kTakesMax &&
               (!is_several(lease) || (lease.flags & shm::LeaseFlag::kTakesSeen) == 0) &&
               lease.units <= shm::kUnitsMax && is_account(lease.account) && sound_flags(lease) &&
               sound_meta(meta_of(lease)) && sound_member(state_, lease) &&
               (state_.pools[lease.pool].order != shm::PoolOrder::kAccount ||
                (lease.account_class <= kFreeClass && is_paid(lease.cost, -kMoneyMax)));
    }

    const State& state_;
};

}  // namespace

std::string Soundness::counters() const {
    return Words(state_).sound_counters() ? ""
                                          : "the counters leave their tables, or their numbers";
}

std::string Soundness::tables() {
    std::string found = counters();
    if (!found.empty()) return found;
    const Words words(state_);
    for (uint32_t row = 0; row < state_.arena.size(); ++row) {
        if (!is_link(state_.arena[row].next, state_.arena.size())) {
            return row_text("arena block", row, " leaves its tables");
        }
    }
    found = words.first_unsound("pool", state_.pools);
    if (found.empty()) found = words.first_unsound("session", state_.sessions);
    if (found.empty()) found = words.first_unsound("type", state_.types);
    if (found.empty()) found = words.first_unsound("elastic", state_.elastics);
    if (found.empty()) found = words.first_unsound("entry", state_.entries);
    if (found.empty()) found = all_claims();
    if (found.empty()) found = words.first_unsound("account", state_.accounts);
    if (found.empty()) found = words.first_unsound("label set", state_.label_sets);
    if (found.empty()) found = words.first_unsound("application", state_.apps);
    if (found.empty()) found = words.first_unsound("group", state_.groups);
    if (found.empty()) found = words.first_unsound("task", state_.tasks);
    if (found.empty()) found = unsound_gangs(state_);
    return found;
}

// Most of them are free, as a rule, and what a free row may say is where its list goes on: the list
// is followed, and then the table until as many rows in use have been met as it leaves.
std::string Soundness::all_claims() {
    const Rows<shm::ClaimRow>& rows = state_.claims;
    const uint32_t free = free_claims();
    free_claims_sound_ = free != kNoRow && free == state_.counters->claims_free;
    uint32_t left = free == kNoRow ? kNoRow : rows.size() - free;
    std::vector<bool> has_run(state_.leases.size());  // under these leases
    for (uint32_t row = 0; row < rows.size() && left != 0; ++row) {
        std::string found = claims(row, row + 1);
        if (!found.empty()) return found;
        const shm::ClaimRow& claim = rows[row];
        if (claim.state == ClaimState::kRunning) {
            if (has_run[claim.lease])
                return row_text("claim", row, " does not fit the rows that it names");
            has_run[claim.lease] = true;
        }
        if (claim.state != ClaimState::kFree) --left;
    }
    return {};
}

std::string Soundness::pools(uint32_t begin, uint32_t end) const {
    return Words(state_).first_unsound("pool", state_.pools, begin, end);
}

std::string Soundness::slots(uint32_t begin, uint32_t end) const {
    return Words(state_).first_unsound("slot", state_.slots, begin, end);
}

std::string Soundness::claims(uint32_t begin, uint32_t end) const {
    return Words(state_).first_unsound("claim", state_.claims, begin, end);
}

std::string Soundness::leases(uint32_t begin, uint32_t end) const {
    return Words(state_).first_unsound("lease", state_.leases, begin, end);
}

std::string Soundness::rows(uint32_t begin, uint32_t end) const {
    std::string unsound = slots(begin, std::min(end, state_.slots.size()));
    return unsound.empty() ? leases(begin, std::min(end, state_.leases.size())) : unsound;
}

std::string Soundness::ready_queues() const {
    const Words words(state_);
    for (uint32_t pool = 0; pool < state_.counters->pools; ++pool) {
        if (!words.ready_queue(pool)) {
            return "the ready queue of pool row " + std::to_string(pool) +
                   " is not one of its idle slots in their order";
        }
    }
    return {};
}

std::string Soundness::lists() const {
    std::string found = ready_queues();
    if (!found.empty()) return found;
    return Words(state_).pledge() ? "" : "the pledge does not follow from the rows";
}

}  // namespace dibs::core
