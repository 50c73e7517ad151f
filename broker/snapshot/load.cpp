// broker/snapshot/load.cpp -- loads rows into their places and checks each one.
// SPDX-License-Identifier: Apache-2.0
#include "broker/snapshot/load.hpp"

#include <cstring>
#include <string>
#include <vector>

#include "broker/core/store/arena.hpp"
#include "broker/core/store/state.hpp"
#include "broker/snapshot/fields.hpp"
#include "schemas/snapshot_generated.h"

namespace dibs::snapshot {

namespace {

using core::Arena;
using core::Rows;
using core::State;
using shm::kNoRow;

constexpr uint32_t kDepthMax = 8;
constexpr uint32_t kTablesMax = 100'000'000;
constexpr uint64_t kStateMax = uint64_t{16} << 30U;

template <class T>
T& writable(const T& row) {
    return const_cast<T&>(row);
}

// From the snapshot into a row; says what is wrong by throwing the field's fault.
struct IntoRow {
    template <class Field, class Told>
    void operator()(Field& field, const Told& told) const {
        field = static_cast<Field>(told);
    }
    template <size_t Size>
    void text(uint8_t& size, char (&bytes)[Size], const std::string& told) const {
        if (told.size() > Size) {
            throw SnapshotError("its text is longer than " + std::to_string(Size) + " bytes");
        }
        size = static_cast<uint8_t>(told.size());
        told.copy(bytes, told.size());
    }
    void key(uint8_t (&bytes)[16], const std::vector<uint8_t>& told) const {
        if (!told.empty() && told.size() != sizeof(bytes)) {
            throw SnapshotError("its key has " + std::to_string(told.size()) + " bytes, not 16");
        }
        std::copy(told.begin(), told.end(), bytes);
    }
    template <class Field, size_t Size, class Told>
    void list(Field (&fields)[Size], const std::vector<Told>& told) const {
        if (told.empty()) return;  // missing: all of it 0, as the row is
        if (told.size() != Size) {
            throw SnapshotError("a list has " + std::to_string(told.size()) + " numbers, not " +
                                std::to_string(Size));
        }
        std::copy(told.begin(), told.end(), fields);
    }
};

class Load {
  public:
    Load(const Snapshot& snapshot, std::span<std::byte> bytes)
        : snapshot_(snapshot), state_(bytes), blocks_free_(state_.arena.size()) {}

    void run() {
        shm::CountersRow& counters = writable(*state_.counters);
        rows<PoolT>("pools", snapshot_.pools(), state_.pools);
        counters.pools = snapshot_.pools() == nullptr ? 0 : snapshot_.pools()->size();
        const auto sessions = rows<SessionT>("sessions", snapshot_.sessions(), state_.sessions);
        const auto slots = rows<SlotT>("slots", snapshot_.slots(), state_.slots);
        const auto claims = rows<ClaimT>("claims", snapshot_.claims(), state_.claims);
        const auto leases = rows<LeaseT>("leases", snapshot_.leases(), state_.leases);
        const auto accounts = rows<AccountT>("accounts", snapshot_.accounts(), state_.accounts);
        rows<LabelSetT>("label_sets", snapshot_.label_sets(), state_.label_sets);
        rows<TypeT>("types", snapshot_.types(), state_.types);
        rows<ElasticT>("elastics", snapshot_.elastics(), state_.elastics);
        rows<EntryT>("entries", snapshot_.entries(), state_.entries);
        gangs();
        const Free free_sessions =
            free_rows("free_sessions", snapshot_.free_sessions(), state_.sessions, sessions);
        counters.sessions_free_head = free_sessions.head;
        counters.sessions_free = free_sessions.count;
        const Free free_slots =
            free_rows("free_slots", snapshot_.free_slots(), state_.slots, slots);
        counters.slots_free_head = free_slots.head;
        counters.slots_free = free_slots.count;
        const Free free_claims =
            free_rows("free_claims", snapshot_.free_claims(), state_.claims, claims);
        counters.claims_free_head = free_claims.head;
        counters.claims_free = free_claims.count;
        const Free free_leases =
            free_rows("free_leases", snapshot_.free_leases(), state_.leases, leases);
        counters.leases_free_head = free_leases.head;
        counters.leases_free = free_leases.count;
        free_accounts(accounts);
        counters.arena_free_head = blocks_free_ == 0 ? kNoRow : next_block_;
        counters.arena_free = blocks_free_;
        counters.arrival_next = snapshot_.arrival_next();
        counters.time_ns = snapshot_.time_ns();
        counters.turns = snapshot_.turns();
        counters.draining = snapshot_.draining();
        counters.fence_base = snapshot_.fence_base();
        state_.head->epoch = snapshot_.epoch();
        state_.head->clean = 1;
        check_counters();
    }

  private:
    struct Free {
        uint32_t head = kNoRow;
        uint32_t count = 0;
    };

    void gangs() {
        shm::CountersRow& counters = writable(*state_.counters);
        const auto apps = rows<AppT>("apps", snapshot_.apps(), state_.apps);
        const auto groups = rows<GroupT>("groups", snapshot_.groups(), state_.groups);
        const auto tasks = rows<TaskT>("tasks", snapshot_.tasks(), state_.tasks);
        const bool has_tables = snapshot_.free_apps() != nullptr;  // else it knew of none
        if (!has_tables && snapshot_.apps() == nullptr && snapshot_.groups() == nullptr &&
            snapshot_.tasks() == nullptr) {
            return;
        }
        const Free free_apps = free_rows("free_apps", snapshot_.free_apps(), state_.apps, apps);
        counters.apps_free_head = free_apps.head;
        counters.apps_free = free_apps.count;
        const Free free_groups =
            free_rows("free_groups", snapshot_.free_groups(), state_.groups, groups);
        counters.groups_free_head = free_groups.head;
        counters.groups_free = free_groups.count;
        const Free free_tasks =
            free_rows("free_tasks", snapshot_.free_tasks(), state_.tasks, tasks);
        counters.tasks_free_head = free_tasks.head;
        counters.tasks_free = free_tasks.count;
    }

    void check_counters() const {
        // What grows from here must have room to grow.
        constexpr uint64_t kFar = uint64_t{1} << 62U;
        if (snapshot_.arrival_next() == 0 || snapshot_.arrival_next() > kFar)
            throw SnapshotError("arrival_next: no claim can have this number");
        if (snapshot_.time_ns() > kFar) throw SnapshotError("time_ns: beyond all time");
        if (snapshot_.turns() > kFar >> 8U) throw SnapshotError("turns: more than there can be");
        if (snapshot_.fence_base() > kFar >> 1U)
            throw SnapshotError("fence_base: no fence has room behind it");
        if (snapshot_.draining() > 2) throw SnapshotError("draining: not 0, 1 or 2");
    }

    uint32_t chain(const std::vector<uint8_t>& bytes) {
        if (bytes.empty()) return kNoRow;
        const uint32_t wanted = Arena::blocks_for(bytes.size());
        if (wanted > blocks_free_) throw SnapshotError("the arena has no room for its bytes");
        const uint32_t first = next_block_;
        for (size_t at = 0; at < bytes.size(); at += sizeof(shm::ArenaBlock::bytes)) {
            shm::ArenaBlock& block = writable(state_.arena[next_block_++]);
            std::memcpy(
                block.bytes, bytes.data() + at, std::min(sizeof(block.bytes), bytes.size() - at));
        }
        blocks_free_ -= wanted;
        return first;
    }

    static uint32_t size32(const std::vector<uint8_t>& bytes) {
        return static_cast<uint32_t>(bytes.size());
    }

    void take(const PoolT& told, shm::PoolRow& row) {
        each_field_of_pool(row, told, IntoRow());
        constexpr size_t kLongest = shm::kResourcesMax * (shm::kResourceNameMax + 1);
        if (told.resources.size() > kLongest) {
            throw SnapshotError("the names of its resources are too long");
        }
        row.resources = chain(told.resources);
        row.resources_size = static_cast<uint8_t>(told.resources.size());
    }
    void take(const SessionT& told, shm::SessionRow& row) const {
        each_field_of_session(row, told, IntoRow());
    }
    void take(const SlotT& told, shm::SlotRow& row) {
        each_field_of_slot(row, told, IntoRow());
        if (row.modified_ns == shm::kNever) row.modified_ns = snapshot_.time_ns();  // missing
        shm::SlotVectorRow& vector = writable(state_.slot_vectors[state_.slots.row_of(row)]);
        IntoRow().list(vector.amount, told.amount);
        IntoRow().list(vector.capacity, told.capacity);
        vector.width = told.width;
        row.attributes = chain(told.attributes);
        row.attributes_size = size32(told.attributes);
    }
    void take(const ClaimT& told, shm::ClaimRow& row) {
        each_field_of_claim(row, told, IntoRow());
        if (told.payload.size() > shm::kPayloadMax) throw SnapshotError("its payload is too long");
        shm::ClaimVectorRow& wanted = writable(state_.claim_vectors[state_.claims.row_of(row)]);
        IntoRow().list(wanted.least, told.least);
        IntoRow().list(wanted.most, told.most);
        wanted.offer = told.offer;
        wanted.offer_slot = told.offer_slot;
        row.payload = chain(told.payload);
        row.payload_size = size32(told.payload);
        row.meta = chain(told.meta);
        row.meta_size = size32(told.meta);
        if (!told.carried_cost.empty() &&
            told.carried_cost.size() != sizeof(int64_t) * shm::kClasses) {
            throw SnapshotError("its carried cost is not of 5 classes");
        }
        row.carried_cost = chain(told.carried_cost);
    }
    void take(const LeaseT& told, shm::LeaseRow& row) {
        each_field_of_lease(row, told, IntoRow());
        if (((row.flags & shm::LeaseFlag::kMeta) != 0) == told.meta.empty()) {
            throw SnapshotError("its flags and its text differ");
        }
        if (!told.meta.empty())
            row.wanted_ns = uint64_t{size32(told.meta)} << 32U | chain(told.meta);
    }
    void take(const AccountT& told, shm::AccountRow& row) {
        each_field_of_account(row, told, IntoRow());
        if (told.balance.empty()) row.charged_ns = snapshot_.time_ns();  // nothing, as of now
        row.label_limits = chain(told.label_limits);
        row.label_limits_size = size32(told.label_limits);
    }
    void take(const LabelSetT& told, shm::LabelSetRow& row) {
        each_field_of_label_set(row, told, IntoRow());
        if (told.references == 0) throw SnapshotError("nothing refers to it");
        row.text = chain(told.text);
        row.text_size = size32(told.text);
    }

    static void take(const TypeT& told, shm::TypeRow& row) {
        each_field_of_type(row, told, IntoRow());
    }
    static void take(const ElasticT& told, shm::ElasticRow& row) {
        each_field_of_elastic(row, told, IntoRow());
    }
    static void take(const EntryT& told, shm::EntryRow& row) {
        each_field_of_entry(row, told, IntoRow());
    }
    void take(const AppT& told, shm::AppRow& row) {
        each_field_of_app(row, told, IntoRow());
        if (told.tags.size() > shm::kMetaMax) throw SnapshotError("its tags are too long");
        row.tags = chain(told.tags);
        row.tags_size = size32(told.tags);
    }
    static void take(const GroupT& told, shm::GroupRow& row) {
        each_field_of_group(row, told, IntoRow());
    }
    static void take(const TaskT& told, shm::TaskRow& row) {
        each_field_of_task(row, told, IntoRow());
    }

    template <class Row>
    static bool in_use(const Row& row) {
        return static_cast<int>(row.state) != 0;
    }
    static bool in_use(const shm::LabelSetRow& row) { return row.references != 0; }
    static bool in_use(const shm::ElasticRow& row) { return row.workers_max != 0; }
    // That of a deleted pool waits for its name.
    static bool in_use(const shm::PoolRow& row) { return row.name_size != 0; }

    // Which rows are in use.
    template <class Told, class Tables, class Row>
    std::vector<bool> rows(const char* table, const Tables* tables, const Rows<Row>& into) {
        std::vector<bool> taken(into.size());
        if (tables == nullptr) return taken;
        for (uint32_t at = 0; at < tables->size(); ++at) {
            Told told;
            tables->Get(at)->UnPackTo(&told);
            const std::string place = std::string(table) + '[' + std::to_string(at) + "] (row " +
                                      std::to_string(told.row) + "): ";
            if (told.row >= into.size()) throw SnapshotError(place + "there is no such row");
            if (taken[told.row]) throw SnapshotError(place + "the row is there twice");
            taken[told.row] = true;
            try {
                take(told, writable(into[told.row]));
            } catch (const SnapshotError& fault) {
                throw SnapshotError(place + fault.what());
            }
            if (!in_use(into[told.row])) throw SnapshotError(place + "its state says it is free");
        }
        return taken;
    }

    static void remember_fence(shm::LeaseRow& lease, uint64_t fence) { lease.fence = fence; }
    template <class Row>
    static void remember_fence(Row&, uint64_t) {}

    // Every row that is not in use, once. The chain of the formatted state is made anew.
    // FlatBuffers' verifier looks at where a list begins, not at what its numbers want.
    static void expect_aligned(const flatbuffers::Vector<const FreeRow*>* rows, const char* table) {
        if (rows == nullptr || rows->size() == 0) return;
        if (reinterpret_cast<uintptr_t>(rows->Data()) % alignof(FreeRow) != 0) {
            throw SnapshotError(std::string(table) + ": its rows are not aligned");
        }
    }

    template <class Row>
    Free free_rows(const char* table,
                   const FreeRows* told,
                   const Rows<Row>& rows,
                   std::vector<bool> taken) const {
        Free free;
        uint32_t* link = &free.head;
        const auto add = [&](const FreeRow& free_row, const std::string& place) {
            const uint32_t row = free_row.row();
            if (row >= rows.size()) throw SnapshotError(place + ": there is no such row");
            if (taken[row]) {
                throw SnapshotError(place + ": row " + std::to_string(row) +
                                    " is in use, or free twice");
            }
            taken[row] = true;
            if (free_row.generation() == 0) throw SnapshotError(place + ": generation 0");
            shm::RowHead& head = writable(rows[row].head);
            head.generation = free_row.generation();
            remember_fence(writable(rows[row]), free_row.fence());
            *link = row;
            link = &head.free_next;
            ++free.count;
        };
        const std::string name(table);
        const auto* order = told == nullptr ? nullptr : told->rows();
        expect_aligned(order, table);
        for (uint32_t at = 0; order != nullptr && at < order->size(); ++at) {
            add(*order->Get(at), name + '[' + std::to_string(at) + ']');
        }
        const uint32_t untouched = told == nullptr ? 0 : told->untouched();
        if (untouched > rows.size()) throw SnapshotError(name + ": more rows than there are");
        for (uint32_t row = rows.size() - untouched; row < rows.size(); ++row)
            add(FreeRow(row, 1, 0), name + ", untouched");
        *link = kNoRow;
        for (uint32_t row = 0; row < rows.size(); ++row) {
            if (taken[row]) continue;
            throw SnapshotError(name + ": row " + std::to_string(row) +
                                " is neither in use nor free");
        }
        return free;
    }

    void free_accounts(const std::vector<bool>& taken) const {
        if (snapshot_.free_accounts() == nullptr) return;
        expect_aligned(snapshot_.free_accounts(), "free_accounts");
        for (const FreeRow* free : *snapshot_.free_accounts()) {
            if (free->row() >= taken.size() || taken[free->row()]) {
                throw SnapshotError("free_accounts: row " + std::to_string(free->row()) +
                                    " is in use, or does not exist");
            }
            writable(state_.accounts[free->row()].head).generation = free->generation();
        }
    }

    const Snapshot& snapshot_;
    State state_;
    uint32_t next_block_ = 0;
    uint32_t blocks_free_;
};

// A snapshot's version alone, which is read before the tables that it names are checked: those of
// another version would look broken.
struct Versioned : flatbuffers::Table {
    [[nodiscard]] bool Verify(flatbuffers::Verifier& verifier) const {
        return VerifyTableStart(verifier) &&
               VerifyField<uint32_t>(verifier, Snapshot::VT_VERSION, sizeof(uint32_t)) &&
               verifier.EndTable();
    }
};

void refuse_unless(bool good, const char* fault) {
    if (!good) throw SnapshotError(fault);
}

}  // namespace

Loader::Loader(std::span<const uint8_t> bytes) {
    refuse_unless(
        bytes.size() >= 2 * sizeof(flatbuffers::uoffset_t) + sizeof(flatbuffers::voffset_t),
        "it is too short to be a snapshot");
    refuse_unless(SnapshotBufferHasIdentifier(bytes.data()),
                  "it is no snapshot: bytes 4 to 7 are not \"DSNP\"");
    constexpr const char* kBroken = "it is cut short, or its tables are broken";
    flatbuffers::Verifier head(bytes.data(), bytes.size(), kDepthMax, kTablesMax);
    refuse_unless(head.VerifyBuffer<Versioned>(SnapshotIdentifier()), kBroken);
    snapshot_ = GetSnapshot(bytes.data());
    if (snapshot_->version() != kVersion) {
        throw SnapshotError("it has version " + std::to_string(snapshot_->version()) +
                            ", this program reads " + std::to_string(kVersion));
    }
    flatbuffers::Verifier verifier(bytes.data(), bytes.size(), kDepthMax, kTablesMax);
    refuse_unless(VerifySnapshotBuffer(verifier), kBroken);
    const core::Limits rows = limits();
    for (const uint32_t count : {rows.pools,
                                 rows.sessions,
                                 rows.slots,
                                 rows.claims,
                                 rows.leases,
                                 rows.accounts,
                                 rows.label_sets,
                                 rows.types,
                                 rows.entries,
                                 rows.applications,
                                 rows.groups,
                                 rows.tasks,
                                 rows.arena_blocks}) {
        refuse_unless(count != 0 && count != kNoRow, "a table has no rows, or too many");
    }
    refuse_unless(rows.pools <= shm::kPoolsMax, "pools_max: more pools than there can be");
    refuse_unless(rows.label_sets <= core::kLabelSetsMax,
                  "label_sets_max: more label sets than there can be");
    refuse_unless(core::state_size(rows) <= kStateMax, "its tables are larger than 16 GiB");
}

core::Limits Loader::limits() const {
    return {.pools = snapshot_->pools_max(),
            .sessions = snapshot_->sessions_max(),
            .slots = snapshot_->slots_max(),
            .claims = snapshot_->claims_max(),
            .leases = snapshot_->leases_max(),
            .arena_blocks = snapshot_->arena_blocks(),
            .log_images = snapshot_->log_images(),
            .log_stores = snapshot_->log_stores(),
            .accounts = snapshot_->accounts_max(),
            .label_sets = snapshot_->label_sets_max(),
            .types = snapshot_->types_max(),
            .entries = snapshot_->entries_max(),
            .applications = snapshot_->apps_max(),
            .groups = snapshot_->groups_max(),
            .tasks = snapshot_->tasks_max()};
}

void Loader::fill(std::span<std::byte> state) const {
    core::format_state(state, limits());
    Load(*snapshot_, state).run();
    if (const std::string why = core::rows_refusal(state); !why.empty()) throw SnapshotError(why);
}

uint64_t Loader::time_ns() const {
    return snapshot_->time_ns();
}

}  // namespace dibs::snapshot
