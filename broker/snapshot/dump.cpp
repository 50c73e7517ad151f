// broker/snapshot/dump.cpp -- writes a snapshot table by table, row by row.
// SPDX-License-Identifier: Apache-2.0
#include "broker/snapshot/dump.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "broker/core/store/row_states.hpp"
#include "broker/core/store/state.hpp"
#include "broker/snapshot/fields.hpp"
#include "schemas/snapshot_generated.h"

namespace dibs::snapshot {

namespace {

using core::Rows;
using core::State;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using shm::kNoRow;

// A FlatBuffer ends at 2 GiB; a row's table and its place take less than this.
constexpr uint64_t kSizeMax = uint64_t{2'000'000'000};
constexpr uint64_t kRowSizeMax = 640;

struct FromRow {
    template <class Field, class Told>
    void operator()(const Field& field, Told& told) const {
        told = static_cast<Told>(field);
    }
    template <size_t Size>
    void text(uint8_t size, const char (&bytes)[Size], std::string& told) const {
        told.assign(bytes, std::min<size_t>(size, Size));
    }
    void key(const uint8_t (&bytes)[16], std::vector<uint8_t>& told) const {
        told.clear();
        if (std::any_of(bytes, bytes + 16, [](uint8_t byte) { return byte != 0; })) {
            told.assign(bytes, bytes + 16);
        }
    }
    template <class Field, size_t Size, class Told>
    void list(const Field (&fields)[Size], std::vector<Told>& told) const {
        told.assign(fields, fields + Size);
    }
};

class Dump {
  public:
    explicit Dump(const State& state) : state_(state) {}

    std::vector<uint8_t> write();

  private:
    [[nodiscard]] std::vector<uint8_t> chain(uint32_t first, uint32_t size) const {
        std::vector<uint8_t> bytes;
        while (first != kNoRow && bytes.size() < size) {
            const shm::ArenaBlock& block = state_.arena[first];
            const auto part = std::min<size_t>(sizeof(block.bytes), size - bytes.size());
            bytes.insert(bytes.end(), block.bytes, block.bytes + part);
            first = block.next;
        }
        return bytes;
    }

    [[nodiscard]] bool by_account(uint32_t pool) const {
        return state_.pools[pool].order == shm::PoolOrder::kAccount;
    }

    void tell(const shm::PoolRow& row, PoolT* told) const {
        each_field_of_pool(row, *told, FromRow());
        if (!core::has_resources(row)) return told->capacity.clear();
        told->resources = chain(row.resources, row.resources_size);
    }
    void tell(const shm::SessionRow& row, SessionT* told) const {
        each_field_of_session(row, *told, FromRow());
    }
    void tell(const shm::SlotRow& row, SlotT* told) const {
        each_field_of_slot(row, *told, FromRow());
        told->attributes = chain(row.attributes, row.attributes_size);
        if (!core::has_resources(state_.pools[row.pool])) return;
        const shm::SlotVectorRow& vector = state_.slot_vectors[state_.slots.row_of(row)];
        FromRow().list(vector.amount, told->amount);
        if (row.part_of == shm::kNoRow) FromRow().list(vector.capacity, told->capacity);
        if (row.state == shm::SlotState::kOrdered) told->width = vector.width;
    }
    void tell(const shm::ClaimRow& row, ClaimT* told) const {
        each_field_of_claim(row, *told, FromRow());
        told->payload = chain(row.payload, row.payload_size);
        told->meta = chain(row.meta, row.meta_size);
        if (core::wants_part(row)) {
            const shm::ClaimVectorRow& wanted = state_.claim_vectors[state_.claims.row_of(row)];
            FromRow().list(wanted.least, told->least);
            FromRow().list(wanted.most, told->most);
            told->offer = wanted.offer;
            told->offer_slot = wanted.offer_slot;
        }
        if (by_account(row.pool)) {
            told->carried_cost = chain(row.carried_cost, sizeof(int64_t) * shm::kClasses);
        }
    }
    void tell(const shm::LeaseRow& row, LeaseT* told) const {
        each_field_of_lease(row, *told, FromRow());
        if ((row.flags & shm::LeaseFlag::kMeta) == 0) return;
        told->meta = chain(core::meta_of(row).chain, core::meta_of(row).size);
        told->wanted_ns = 0;
    }
    void tell(const shm::AccountRow& row, AccountT* told) const {
        each_field_of_account(row, *told, FromRow());
        told->label_limits = chain(row.label_limits, row.label_limits_size);
    }
    void tell(const shm::LabelSetRow& row, LabelSetT* told) const {
        each_field_of_label_set(row, *told, FromRow());
        told->text = chain(row.text, row.text_size);
    }

    static void tell(const shm::TypeRow& row, TypeT* told) {
        each_field_of_type(row, *told, FromRow());
    }
    static void tell(const shm::ElasticRow& row, ElasticT* told) {
        each_field_of_elastic(row, *told, FromRow());
    }

    static void tell(const shm::EntryRow& row, EntryT* told) {
        each_field_of_entry(row, *told, FromRow());
    }

    void tell(const shm::AppRow& row, AppT* told) const {
        each_field_of_app(row, *told, FromRow());
        told->tags = chain(row.tags, row.tags_size);
    }
    static void tell(const shm::GroupRow& row, GroupT* told) {
        each_field_of_group(row, *told, FromRow());
    }
    static void tell(const shm::TaskRow& row, TaskT* told) {
        each_field_of_task(row, *told, FromRow());
    }

    template <class Told, class Row, class InUse>
    auto rows(const Rows<Row>& rows, const InUse& in_use) {
        std::vector<Offset<typename Told::TableType>> places;
        for (uint32_t row = 0; row < rows.size(); ++row) {
            if (!in_use(row, rows[row])) continue;
            Told told;
            told.row = row;
            tell(rows[row], &told);
            places.push_back(Told::TableType::Pack(builder_, &told));
        }
        return builder_.CreateVector(places);
    }

    static uint64_t fence_of(const shm::LeaseRow& lease) { return lease.fence; }
    template <class Row>
    static uint64_t fence_of(const Row&) {
        return 0;
    }

    template <class Row>
    Offset<FreeRows> free_rows(const Rows<Row>& rows, uint32_t head, uint32_t count) {
        std::vector<FreeRow> order;
        for (uint32_t row = head; row != kNoRow && order.size() < count;
             row = rows[row].head.free_next) {
            order.emplace_back(row, rows[row].head.generation, fence_of(rows[row]));
        }
        uint32_t untouched = 0;
        while (!order.empty() && order.back().row() == rows.size() - 1 - untouched &&
               order.back().generation() == 1) {
            order.pop_back();
            ++untouched;
        }
        return CreateFreeRowsDirect(builder_, &order, untouched);
    }

    Offset<flatbuffers::Vector<const FreeRow*>> free_accounts();
    [[nodiscard]] uint64_t size_at_most() const;

    const State& state_;
    FlatBufferBuilder builder_{1 << 20};
};

Offset<flatbuffers::Vector<const FreeRow*>> Dump::free_accounts() {
    std::vector<FreeRow> free;
    for (uint32_t row = 0; row < state_.accounts.size(); ++row) {
        const shm::AccountRow& account = state_.accounts[row];
        if (account.state == 0 && account.head.generation != 0)
            free.emplace_back(row, account.head.generation, 0);
    }
    return builder_.CreateVectorOfStructs(free);
}

uint64_t Dump::size_at_most() const {
    const shm::CountersRow& counters = *state_.counters;
    const uint64_t rows =
        uint64_t{state_.pools.size()} + state_.sessions.size() + state_.accounts.size() +
        state_.types.size() + state_.elastics.size() + state_.label_sets.size() +
        state_.entries.size() + state_.apps.size() + state_.groups.size() + state_.tasks.size() +
        (state_.slots.size() - std::min(state_.slots.size(), counters.slots_free)) +
        (state_.claims.size() - std::min(state_.claims.size(), counters.claims_free)) +
        (state_.leases.size() - std::min(state_.leases.size(), counters.leases_free));
    const uint64_t free = uint64_t{counters.slots_free} + counters.claims_free +
                          counters.leases_free + counters.sessions_free;
    const uint64_t blocks =
        state_.arena.size() - std::min(state_.arena.size(), counters.arena_free);
    return rows * kRowSizeMax + free * sizeof(FreeRow) + blocks * sizeof(shm::ArenaBlock);
}

std::vector<uint8_t> Dump::write() {
    if (size_at_most() > kSizeMax) {
        throw SnapshotError("the state is too large for a snapshot: 2 GB are the most");
    }
    const shm::CountersRow& counters = *state_.counters;
    const auto pools = rows<PoolT>(
        state_.pools, [&](uint32_t row, const shm::PoolRow&) { return row < counters.pools; });
    const auto live = [](uint32_t, const auto& row) { return static_cast<int>(row.state) != 0; };
    const auto sessions = rows<SessionT>(state_.sessions, live);
    const auto slots = rows<SlotT>(state_.slots, live);
    const auto claims = rows<ClaimT>(state_.claims, live);
    const auto leases = rows<LeaseT>(state_.leases, live);
    const auto accounts = rows<AccountT>(state_.accounts, live);
    const auto sets = rows<LabelSetT>(state_.label_sets, [](uint32_t, const shm::LabelSetRow& set) {
        return set.references != 0;
    });
    const auto types = rows<TypeT>(state_.types, live);
    const auto elastics =
        rows<ElasticT>(state_.elastics, [&](uint32_t row, const shm::ElasticRow& elastic) {
            return row < counters.pools && elastic.workers_max != 0;
        });
    const auto entries = rows<EntryT>(state_.entries, live);
    const auto apps = rows<AppT>(state_.apps, live);
    const auto groups = rows<GroupT>(state_.groups, live);
    const auto tasks = rows<TaskT>(state_.tasks, live);
    const auto free_sessions =
        free_rows(state_.sessions, counters.sessions_free_head, counters.sessions_free);
    const auto free_slots = free_rows(state_.slots, counters.slots_free_head, counters.slots_free);
    const auto free_claims =
        free_rows(state_.claims, counters.claims_free_head, counters.claims_free);
    const auto free_leases =
        free_rows(state_.leases, counters.leases_free_head, counters.leases_free);
    const auto free_apps = free_rows(state_.apps, counters.apps_free_head, counters.apps_free);
    const auto free_groups =
        free_rows(state_.groups, counters.groups_free_head, counters.groups_free);
    const auto free_tasks = free_rows(state_.tasks, counters.tasks_free_head, counters.tasks_free);
    const auto accounts_used = free_accounts();

    SnapshotBuilder told(builder_);
    told.add_version(kVersion);
    told.add_epoch(state_.head->epoch);
    told.add_time_ns(counters.time_ns);
    told.add_turns(counters.turns);
    told.add_arrival_next(counters.arrival_next);
    told.add_draining(counters.draining);
    told.add_fence_base(counters.fence_base);
    told.add_pools_max(state_.pools.size());
    told.add_sessions_max(state_.sessions.size());
    told.add_slots_max(state_.slots.size());
    told.add_claims_max(state_.claims.size());
    told.add_leases_max(state_.leases.size());
    told.add_accounts_max(state_.accounts.size());
    told.add_label_sets_max(state_.label_sets.size());
    told.add_arena_blocks(state_.arena.size());
    told.add_log_images(state_.log_images_max);
    told.add_log_stores(state_.log_stores_max);
    told.add_pools(pools);
    told.add_sessions(sessions);
    told.add_slots(slots);
    told.add_claims(claims);
    told.add_leases(leases);
    told.add_accounts(accounts);
    told.add_label_sets(sets);
    told.add_free_sessions(free_sessions);
    told.add_free_slots(free_slots);
    told.add_free_claims(free_claims);
    told.add_free_leases(free_leases);
    told.add_free_accounts(accounts_used);
    told.add_types_max(state_.types.size());
    told.add_types(types);
    told.add_elastics(elastics);
    told.add_entries_max(state_.entries.size());
    told.add_entries(entries);
    told.add_apps_max(state_.apps.size());
    told.add_groups_max(state_.groups.size());
    told.add_tasks_max(state_.tasks.size());
    told.add_apps(apps);
    told.add_groups(groups);
    told.add_tasks(tasks);
    told.add_free_apps(free_apps);
    told.add_free_groups(free_groups);
    told.add_free_tasks(free_tasks);
    FinishSnapshotBuffer(builder_, told.Finish());
    const uint8_t* bytes = builder_.GetBufferPointer();
    return {bytes, bytes + builder_.GetSize()};
}

}  // namespace

std::vector<uint8_t> dump(std::span<std::byte> bytes) {
    const State state(bytes);
    return Dump(state).write();
}

}  // namespace dibs::snapshot
