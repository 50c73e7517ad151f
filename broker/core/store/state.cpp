// broker/core/store/state.cpp -- lays out the tables of a STATE segment and formats an empty one.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/store/state.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>

#include "broker/core/core.hpp"

namespace dibs::core {

namespace {

using shm::kNoRow;
using shm::Table;

constexpr size_t kTables = static_cast<size_t>(Table::kCount);
using Places = std::array<shm::TablePlace, kTables>;
static_assert(sizeof(Places) == sizeof(shm::StateHead::table));

// The largest command touches about 2 × 256 rows; a turn ends at three quarters of the log.
constexpr uint32_t kLogImagesMin = 6144;
constexpr uint32_t kLogStoresMin = 2048;

// Before its commands a turn may step every account (accounts.cpp), three lines each. A quarter of
// the smallest log is left for commands before it is three quarters full: else none would ever be
// taken. A reading of a queue may forget every entry in one command, which fits the last quarter
// with what the turn's caller adds.
uint32_t images_for(const Limits& limits) {
    constexpr uint64_t kAccountLines = 3;
    const uint64_t wanted = limits.accounts * kAccountLines + kLogImagesMin / 4;
    const uint64_t images = (wanted + 2) / 3 * 4;
    const uint64_t for_entries = (uint64_t{limits.entries} + kLogImagesMin / 8) * 4;
    const auto most =
        static_cast<uint32_t>(std::min<uint64_t>(std::max(images, for_entries), UINT32_MAX));
    return std::max({limits.log_images, kLogImagesMin, most});
}

// By Table.
constexpr std::array<uint32_t, kTables> kRowSizes = {
    sizeof(shm::CountersRow),    sizeof(shm::PoolRow),     sizeof(shm::SessionRow),
    sizeof(shm::SlotRow),        sizeof(shm::ClaimRow),    sizeof(shm::LeaseRow),
    sizeof(shm::AccountRow),     sizeof(shm::LabelSetRow), sizeof(shm::SlotVectorRow),
    sizeof(shm::ClaimVectorRow), sizeof(shm::TypeRow),     sizeof(shm::ElasticRow),
    sizeof(shm::EntryRow),       sizeof(shm::AppRow),      sizeof(shm::GroupRow),
    sizeof(shm::TaskRow),        sizeof(shm::ArenaBlock),  sizeof(uint64_t),
    sizeof(shm::LogImage),       sizeof(shm::LogStore)};

Places lay_out(const Limits& limits, uint64_t* size) {
    Places places{};
    uint64_t end = sizeof(shm::StateHead);
    const auto add = [&](Table table, uint32_t rows, size_t row_size) {
        places[static_cast<size_t>(table)] = {end, rows, static_cast<uint32_t>(row_size)};
        const uint64_t bytes = static_cast<uint64_t>(rows) * row_size;
        end += (bytes + shm::kLineSize - 1) / shm::kLineSize * shm::kLineSize;
    };
    const uint32_t images = images_for(limits);
    add(Table::kCounters, 1, sizeof(shm::CountersRow));
    const uint32_t pools = std::clamp(limits.pools, 1U, shm::kPoolsMax);
    add(Table::kPools, pools, sizeof(shm::PoolRow));
    add(Table::kSessions, std::max(limits.sessions, 1U), sizeof(shm::SessionRow));
    add(Table::kSlots, std::max(limits.slots, 1U), sizeof(shm::SlotRow));
    add(Table::kClaims, std::max(limits.claims, 1U), sizeof(shm::ClaimRow));
    add(Table::kLeases, std::max(limits.leases, 1U), sizeof(shm::LeaseRow));
    add(Table::kAccounts, std::max(limits.accounts, 1U), sizeof(shm::AccountRow));
    add(Table::kLabelSets,
        std::clamp(limits.label_sets, 1U, kLabelSetsMax),
        sizeof(shm::LabelSetRow));
    add(Table::kSlotVectors, std::max(limits.slots, 1U), sizeof(shm::SlotVectorRow));
    add(Table::kClaimVectors, std::max(limits.claims, 1U), sizeof(shm::ClaimVectorRow));
    add(Table::kTypes, std::max(limits.types, 1U), sizeof(shm::TypeRow));
    add(Table::kElastics, pools, sizeof(shm::ElasticRow));
    add(Table::kEntries, std::max(limits.entries, 1U), sizeof(shm::EntryRow));
    add(Table::kApps, std::max(limits.applications, 1U), sizeof(shm::AppRow));
    add(Table::kGroups, std::max(limits.groups, 1U), sizeof(shm::GroupRow));
    add(Table::kTasks, std::max(limits.tasks, 1U), sizeof(shm::TaskRow));
    add(Table::kArena, std::max(limits.arena_blocks, 1U), sizeof(shm::ArenaBlock));
    add(Table::kLogOffsets, images, sizeof(uint64_t));
    add(Table::kLogImages, images, sizeof(shm::LogImage));
    add(Table::kLogStores, std::max(limits.log_stores, kLogStoresMin), sizeof(shm::LogStore));
    *size = end;
    return places;
}

template <class Row>
void chain_free(std::byte* first, uint32_t rows) {
    for (uint32_t row = 0; row < rows; ++row) {
        auto* fresh = new (first + static_cast<size_t>(row) * sizeof(Row)) Row{};
        fresh->head.generation = 1;  // so that no id is 0
        fresh->head.free_next = row + 1 < rows ? row + 1 : kNoRow;
    }
}

}  // namespace

uint64_t state_size(const Limits& limits) {
    uint64_t size = 0;
    lay_out(limits, &size);
    return size;
}

void format_state(std::span<std::byte> state, const Limits& limits) {
    uint64_t size = 0;
    const Places places = lay_out(limits, &size);
    assert(state.size() >= size);
    auto* head = new (state.data()) shm::StateHead{};
    head->magic = shm::kStateMagic;
    head->tables = static_cast<uint32_t>(kTables);
    head->size = size;
    std::copy(places.begin(), places.end(), head->table);
    const auto at = [&](Table table) {
        return state.data() + places[static_cast<size_t>(table)].offset;
    };
    const auto rows = [&](Table table) { return places[static_cast<size_t>(table)].rows; };
    chain_free<shm::SessionRow>(at(Table::kSessions), rows(Table::kSessions));
    chain_free<shm::SlotRow>(at(Table::kSlots), rows(Table::kSlots));
    chain_free<shm::ClaimRow>(at(Table::kClaims), rows(Table::kClaims));
    chain_free<shm::LeaseRow>(at(Table::kLeases), rows(Table::kLeases));
    chain_free<shm::AppRow>(at(Table::kApps), rows(Table::kApps));
    chain_free<shm::GroupRow>(at(Table::kGroups), rows(Table::kGroups));
    chain_free<shm::TaskRow>(at(Table::kTasks), rows(Table::kTasks));
    auto* arena = reinterpret_cast<shm::ArenaBlock*>(at(Table::kArena));
    const uint32_t blocks = rows(Table::kArena);
    for (uint32_t block = 0; block < blocks; ++block) {
        arena[block].next = block + 1 < blocks ? block + 1 : kNoRow;
    }
    auto* counters = new (at(Table::kCounters)) shm::CountersRow{};
    counters->arrival_next = 1;
    counters->claims_free = rows(Table::kClaims);
    counters->leases_free = rows(Table::kLeases);
    counters->slots_free = rows(Table::kSlots);
    counters->sessions_free = rows(Table::kSessions);
    counters->apps_free = rows(Table::kApps);
    counters->groups_free = rows(Table::kGroups);
    counters->tasks_free = rows(Table::kTasks);
    counters->arena_free = blocks;
    counters->arena_freed_head = kNoRow;
    counters->arena_freed_tail = kNoRow;
    head->version.store(shm::kLayoutVersion, std::memory_order_release);  // pairs with opening
}

std::string state_refusal(std::span<const std::byte> state) {
    if (state.size() < sizeof(shm::StateHead)) return "state is smaller than its head";
    const auto* head = reinterpret_cast<const shm::StateHead*>(state.data());
    if (head->magic != shm::kStateMagic) return "state does not begin with DIBSTATE";
    const uint32_t version = head->version.load(std::memory_order_acquire);
    if (version != shm::kLayoutVersion) {
        return "state has layout version " + std::to_string(version) + ", this broker reads " +
               std::to_string(shm::kLayoutVersion);
    }
    if (head->size > state.size()) {
        return "state is cut short: " + std::to_string(state.size()) + " of " +
               std::to_string(head->size) + " bytes";
    }
    if (head->tables != kTables) return "state has an unknown number of tables";
    uint64_t end = sizeof(shm::StateHead);
    for (size_t table = 0; table < kTables; ++table) {
        const shm::TablePlace& place = head->table[table];
        const uint64_t bytes = static_cast<uint64_t>(place.rows) * place.row_size;
        if (place.rows == 0 || place.offset % shm::kLineSize != 0 || place.offset > head->size ||
            bytes > head->size - place.offset) {
            return "table " + std::to_string(table) + " of the state lies outside of it";
        }
        if (place.row_size != kRowSizes[table] || place.offset < end) {
            return "table " + std::to_string(table) + " of the state is not laid out as one";
        }
        end = place.offset + bytes;
    }
    const auto rows = [&](Table table) { return head->table[static_cast<size_t>(table)].rows; };
    if (rows(Table::kLogImages) < kLogImagesMin || rows(Table::kLogStores) < kLogStoresMin ||
        rows(Table::kLogOffsets) < rows(Table::kLogImages)) {
        return "the state's log has no room for a turn";
    }
    if (rows(Table::kSlotVectors) != rows(Table::kSlots) ||
        rows(Table::kClaimVectors) != rows(Table::kClaims)) {
        return "the state's vectors are not as many as its slots and claims";
    }
    if (rows(Table::kElastics) != rows(Table::kPools)) {
        return "the state's elastic rows are not as many as its pools";
    }
    if (rows(Table::kPools) > shm::kPoolsMax) return "state has more pools than there can be";
    if (rows(Table::kLabelSets) > kLabelSetsMax) {
        return "state has more label sets than there can be";
    }
    return {};
}

State::State(std::span<std::byte> bytes)
    : base(bytes.data()),
      size(bytes.size()),
      head(reinterpret_cast<shm::StateHead*>(bytes.data())),
      counters(reinterpret_cast<const shm::CountersRow*>(place(Table::kCounters))),
      pools(view<shm::PoolRow>(Table::kPools)),
      sessions(view<shm::SessionRow>(Table::kSessions)),
      slots(view<shm::SlotRow>(Table::kSlots)),
      claims(view<shm::ClaimRow>(Table::kClaims)),
      leases(view<shm::LeaseRow>(Table::kLeases)),
      accounts(view<shm::AccountRow>(Table::kAccounts)),
      label_sets(view<shm::LabelSetRow>(Table::kLabelSets)),
      slot_vectors(view<shm::SlotVectorRow>(Table::kSlotVectors)),
      claim_vectors(view<shm::ClaimVectorRow>(Table::kClaimVectors)),
      types(view<shm::TypeRow>(Table::kTypes)),
      elastics(view<shm::ElasticRow>(Table::kElastics)),
      entries(view<shm::EntryRow>(Table::kEntries)),
      apps(view<shm::AppRow>(Table::kApps)),
      groups(view<shm::GroupRow>(Table::kGroups)),
      tasks(view<shm::TaskRow>(Table::kTasks)),
      arena(view<shm::ArenaBlock>(Table::kArena)),
      log_offsets(reinterpret_cast<uint64_t*>(place(Table::kLogOffsets))),
      log_images(reinterpret_cast<shm::LogImage*>(place(Table::kLogImages))),
      log_stores(reinterpret_cast<shm::LogStore*>(place(Table::kLogStores))),
      log_images_max(rows(Table::kLogImages)),
      log_stores_max(rows(Table::kLogStores)) {}

std::byte* State::place(Table table) const {
    return base + head->table[static_cast<size_t>(table)].offset;
}

uint32_t State::rows(Table table) const {
    return head->table[static_cast<size_t>(table)].rows;
}

template <class Row>
Rows<Row> State::view(Table table) const {
    assert(head->table[static_cast<size_t>(table)].row_size == sizeof(Row));
    return {reinterpret_cast<const Row*>(place(table)), rows(table)};
}

}  // namespace dibs::core
