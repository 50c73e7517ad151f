// tests/broker/snapshot/load_test.cpp -- snapshots that no scheduler wrote: each is refused with
// the place of what is wrong.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/snapshot/load.hpp"
#include "schemas/snapshot_generated.h"
#include "shm/lines.hpp"

namespace dibs::snapshot {
namespace {

constexpr core::Limits kLimits = {.pools = 2,
                                  .sessions = 2,
                                  .slots = 4,
                                  .claims = 4,
                                  .leases = 4,
                                  .arena_blocks = 4,
                                  .accounts = 2,
                                  .label_sets = 2};

// A pool of one slot, a session that holds it and a claim of it that waits with a payload.
std::vector<uint8_t> small() {
    shm::Lines memory(core::state_size(kLimits));
    const std::span<std::byte> bytes = memory.bytes();
    core::format_state(bytes, kLimits);
    core::Core core(bytes);
    std::string why;
    core.begin_turn(1000);
    const uint32_t pool = core.set_pool({.name = "gpu", .slots = 1}, &why);
    const uint32_t session = core.open_session({.uid = 7, .tags_max = 4});
    const std::vector<uint8_t> payload = {1, 2, 3};
    core.apply(core::Claim{.session = session, .tag = 0, .pool = pool});
    core.apply(core::Claim{.session = session, .tag = 1, .pool = pool, .payload = payload});
    core.decide();
    core.commit();
    core.clear();
    return dump(bytes);
}

std::vector<uint8_t> packed(const SnapshotT& told) {
    flatbuffers::FlatBufferBuilder builder;
    FinishSnapshotBuffer(builder, Snapshot::Pack(builder, &told));
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

std::string refusal(std::span<const uint8_t> bytes) {
    try {
        const Loader loader(bytes);
        shm::Lines memory(core::state_size(loader.limits()));
        const std::span<std::byte> state = memory.bytes();
        loader.fill(state);
        const core::Core core(state);
        const std::vector<std::string> violations = core.check_all();
        return violations.empty() ? "" : violations.front();
    } catch (const SnapshotError& error) {
        return error.what();
    }
}

std::string refusal_of(const std::function<void(SnapshotT&)>& change) {
    const std::vector<uint8_t> bytes = small();
    SnapshotT told;
    GetSnapshot(bytes.data())->UnPackTo(&told);
    change(told);
    return refusal(packed(told));
}

TEST(Load, TakesWhatWasDumped) {
    EXPECT_EQ(refusal(small()), "");
    EXPECT_EQ(refusal_of([](SnapshotT&) {}), "");
}

// An account with 3 units of P0 at a rate, and a reported worker that has been idle since 1 s.
std::vector<uint8_t> with_account() {
    shm::Lines memory(core::state_size(kLimits));
    const std::span<std::byte> bytes = memory.bytes();
    core::format_state(bytes, kLimits);
    core::Core core(bytes);
    core.begin_turn(1'000'000'000);
    const std::array<int64_t, 1> money = {3'000'000};
    EXPECT_TRUE(core.set_account(
        {.name = "a", .rate = money, .charge_max_ns = 60'000'000'000, .balance = money}, nullptr));
    const uint32_t pool = core.set_pool(
        {.name = "p", .kind = shm::PoolKind::kWorker, .order = shm::PoolOrder::kAccount}, nullptr);
    core.apply(core::Report{.pool = pool, .worker = "w"});
    core.decide();
    core.commit();
    core.clear();
    core.begin_turn(2'000'000'000);
    core.apply(core::Report{.pool = pool, .worker = "v"});
    core.decide();
    core.commit();
    core.clear();
    return dump(bytes);
}

// S2.29: when it was examined is nowhere said, when a worker changed and what an account has may
// be missing.
TEST(Load, TakesAMissingExaminedAsTheEpochAMissingChangeAsNowAMissingBalanceAsNothing) {
    SnapshotT told;
    const std::vector<uint8_t> bytes = with_account();
    GetSnapshot(bytes.data())->UnPackTo(&told);
    ASSERT_EQ(told.slots.size(), 2U);
    EXPECT_EQ(told.slots[0]->modified_ns, 1'000'000'000U);
    told.slots[0]->modified_ns = shm::kNever;  // not written
    told.accounts[0]->balance.clear();
    const std::vector<uint8_t> changed = packed(told);
    const Loader loader(changed);
    shm::Lines memory(core::state_size(loader.limits()));
    const std::span<std::byte> state = memory.bytes();
    loader.fill(state);
    core::Core core(state);
    EXPECT_EQ(core.check_all(), std::vector<std::string>{});
    EXPECT_EQ(core.slot(told.slots[0]->row).modified_ns, 2'000'000'000U);
    EXPECT_EQ(core.balance(0)[0], 0);
    // From here on it earns: 3 units a second.
    core.begin_turn(3'000'000'000);
    core.apply(core::Claim{
        .session = core.open_session({.uid = 7, .account = "a"}), .tag = 1, .units = 2, .pool = 0});
    EXPECT_EQ(core.balance(0)[0], 3'000'000);
    EXPECT_EQ(core.examined_ns(core.find_claim(1)), 0U);
    core.decide();
    core.commit();
    core.clear();
}

TEST(Load, RefusesWhatIsNoSnapshotOfThisVersion) {
    std::vector<uint8_t> bytes = small();
    EXPECT_EQ(refusal(std::span(bytes).first(3)), "it is too short to be a snapshot");
    EXPECT_EQ(refusal(std::span(bytes).first(bytes.size() / 2)),
              "it is cut short, or its tables are broken");
    bytes[5] = 'x';
    EXPECT_EQ(refusal(bytes), "it is no snapshot: bytes 4 to 7 are not \"DSNP\"");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.version = 3; }),
              "it has version 3, this program reads 2");
}

// The tables of another version have other fields.
TEST(Load, SaysTheVersionOfWhoseTablesItCannotRead) {
    SnapshotT told;
    const std::vector<uint8_t> bytes = small();
    GetSnapshot(bytes.data())->UnPackTo(&told);
    told.version = 1;
    const std::vector<uint8_t> older = packed(told);
    EXPECT_EQ(refusal(std::span(older).first(older.size() / 2)),
              "it has version 1, this program reads 2");
}

TEST(Load, RefusesTablesThatCannotBe) {
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.slots_max = 0; }),
              "a table has no rows, or too many");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.pools_max = 5000; }),
              "pools_max: more pools than there can be");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.label_sets_max = 8193; }),
              "label_sets_max: more label sets than there can be");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.claims_max = 4'000'000'000; }),
              "its tables are larger than 16 GiB");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.arrival_next = 0; }),
              "arrival_next: no claim can have this number");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.fence_base = uint64_t{1} << 62U; }),
              "fence_base: no fence has room behind it");
}

TEST(Load, RefusesARowThatIsNotInItsPlace) {
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.slots[0]->row = 4; }),
              "slots[0] (row 4): there is no such row");
    EXPECT_EQ(refusal_of([](SnapshotT& told) {
                  told.claims.push_back(std::make_unique<ClaimT>(*told.claims[0]));
              }),
              "claims[1] (row 0): the row is there twice");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.leases[0]->state = 0; }),
              "leases[0] (row 0): its state says it is free");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.pools[0]->name = std::string(64, 'x'); }),
              "pools[0] (row 0): its text is longer than 63 bytes");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.leases[0]->cost.resize(4); }),
              "leases[0] (row 0): a list has 4 numbers, not 5");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.claims[0]->key.resize(3); }),
              "claims[0] (row 0): its key has 3 bytes, not 16");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.claims[0]->payload.resize(3000); }),
              "claims[0] (row 0): the arena has no room for its bytes");
}

TEST(Load, RefusesFreeRowsThatAreNot) {
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.free_slots->untouched = 4; }),
              "free_slots, untouched: row 0 is in use, or free twice");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.free_slots->untouched = 2; }),
              "free_slots: row 1 is neither in use nor free");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.free_claims->rows = {FreeRow(9, 1, 0)}; }),
              "free_claims[0]: there is no such row");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.free_accounts = {FreeRow(2, 1, 0)}; }),
              "free_accounts: row 2 is in use, or does not exist");
}

// The list begins four bytes on, where its first row's number says how long it is.
TEST(Load, RefusesFreeRowsWhereNoneCanBegin) {
    const std::vector<uint8_t> whole = small();
    SnapshotT told;
    GetSnapshot(whole.data())->UnPackTo(&told);
    told.free_slots->rows = {FreeRow(1, 1, 0)};
    told.free_slots->untouched = 2;
    std::vector<uint8_t> bytes = packed(told);
    ASSERT_EQ(refusal(bytes), "");
    const auto* table =
        reinterpret_cast<const flatbuffers::Table*>(GetSnapshot(bytes.data())->free_slots());
    bytes[static_cast<size_t>(table->GetAddressOf(FreeRows::VT_ROWS) - bytes.data())] += 4;
    EXPECT_EQ(refusal(bytes), "free_slots: its rows are not aligned");
}

TEST(Load, RefusesRowsThatContradictOneAnother) {
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.leases[0]->session = 1; }),
              "lease row 0 leaves its tables");
    EXPECT_EQ(refusal_of([](SnapshotT& told) { told.slots[0]->holder = 77; }),
              "slot row 0 leaves its tables");
    EXPECT_NE(refusal_of([](SnapshotT& told) { told.pools[0]->leased = 2; }), "");
    EXPECT_NE(refusal_of([](SnapshotT& told) { told.sessions[0]->claims = 5; }), "");
    EXPECT_NE(refusal_of([](SnapshotT& told) { told.slots[0]->state = 1; }), "");
}

}  // namespace
}  // namespace dibs::snapshot
