// tests/broker/core/provision/provisioning_test.cpp -- a second look at an elastic pool, or another
// broker in the place of this one, changes nothing that is decided.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "broker/core/decision_sum.hpp"
#include "broker/core/look.hpp"
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::core {
namespace {

using shm::SlotState;
using Answer = Provisioned::Answer;

constexpr Limits kRows{.pools = 4, .sessions = 16, .slots = 40, .claims = 64, .leases = 64};
constexpr uint32_t kHosts = 3;
constexpr uint16_t kTags = 24;

// Clients, hosts and a provisioner that say anything at any time, drawn by the same dice in each.
class World {
  public:
    explicit World(uint32_t seed, bool dies)
        : dice_(seed), dies_(dies), storage_(state_size(kRows)) {
        format_state(storage_.bytes(), kRows);
        core_ = std::make_unique<Core>(storage_.bytes());
        core_->begin_turn(0);
        PoolConfig pool{.name = "vm", .kind = shm::PoolKind::kWorker, .units_max = 3};
        pool.order = shm::PoolOrder::kPriority;
        pool.reservation_ttl_ns = 40;
        pool.workers_max = 2 + draw(10);
        pool.workers_min = draw(3);
        pool.spare = draw(3);
        pool.quota_estimate = draw(5);
        pool.creates_max = draw(4);
        pool.create_throttle_ns = draw(2) * 7;
        pool.quiet_ns = 50;
        pool.quota_error_ns = pool.capacity_error_ns = pool.idle_timeout_ns = 30;
        pool.boot_timeout_ns = 60;
        pool.release_is_ready = draw(2) == 0;
        core_->set_pool(pool, nullptr);
        for (const char* name : {"a", "b"})
            core_->set_type({.name = name, .pool = "vm", .cost = 1 + draw(3)}, nullptr);
        client_ = core_->open_session({.uid = 1});
        cloud_ = core_->open_session({.uid = 2});
        for (uint32_t& host : hosts_)
            host = core_->open_session({.uid = 3});
        provide("a", true);
        close();
    }

    // What one more turn decides, as sums.
    std::vector<uint32_t> turn() {
        core_->begin_turn(now_ += draw(12));
        for (uint32_t commands = draw(6); commands != 0; --commands)
            say();
        std::vector<uint32_t> sums = close();
        if (!dies_) return sums;
        Core::Refusal refusal;
        core_ = Core::attach(storage_.bytes(), 0, &refusal, 8);
        EXPECT_NE(core_, nullptr) << refusal.unsound
                                  << (refusal.wrong.empty() ? "" : refusal.wrong[0]);
        core_->begin_turn(now_);
        EXPECT_EQ(close(), std::vector<uint32_t>{});
        return sums;
    }
    [[nodiscard]] const Core& core() const { return *core_; }
    [[nodiscard]] std::span<std::byte> rows() { return storage_.bytes(); }

  private:
    uint32_t draw(uint32_t below) { return static_cast<uint32_t>(dice_() % below); }
    void provide(std::string_view type, bool on) {
        core_->apply(Provide{.session = cloud_, .pool = 0, .type = type, .on = on});
    }

    std::vector<uint32_t> close() {
        std::vector<uint32_t> sums;
        for (;;) {
            core_->decide();
            for (const Decision& decision : core_->decisions()) {
                if (decision.kind != DecisionKind::kDemand)
                    sums.push_back(sum_of(*core_, decision));
            }
            core_->commit();
            core_->clear();
            EXPECT_EQ(core_->check_all(), std::vector<std::string>{});
            if (!core_->work_left()) return sums;
            core_->begin_turn(now_);
        }
    }

    // A slot in such a state, or kNoRow.
    uint32_t some_slot(auto... states) {
        const uint32_t first = draw(core_->slots_max());
        for (uint32_t at = 0; at < core_->slots_max(); ++at) {
            const uint32_t row = (first + at) % core_->slots_max();
            if (((core_->slot(row).state == states) || ...)) return row;
        }
        return shm::kNoRow;
    }

    void say_of(uint32_t row, WorkerWord::Kind kind) {
        if (row == shm::kNoRow) return;
        const shm::SlotRow& slot = core_->slot(row);
        core_->apply(WorkerWord{.kind = kind,
                                .try_again = draw(2) == 0,
                                .then_ready = draw(2) == 0,
                                .session = slot.session,
                                .slot = row_id(slot.head.generation, row),
                                .round = slot.round});
    }

    void say() {
        using Kind = WorkerWord::Kind;
        const uint32_t order = some_slot(SlotState::kOrdered);
        const SlotId id = order == shm::kNoRow
                              ? SlotId{}
                              : SlotId{row_id(core_->slot(order).head.generation, order)};
        const auto tag = static_cast<uint16_t>(draw(kTags));
        switch (draw(16)) {
            case 0:
            case 1:
            case 2: {
                Claim claim{.session = client_, .tag = tag, .pool = 0};
                claim.units = static_cast<uint16_t>(draw(4) == 0 ? 1 + draw(3) : 1);
                claim.priority = static_cast<int32_t>(draw(4));
                claim.timeout_ns = draw(3) == 0 ? draw(90) : shm::kNever;
                return core_->apply(claim);
            }
            case 3:
                return core_->apply(Cancel{.session = client_, .tag = tag});
            case 4:
            case 5:
                return core_->apply(Announce{.session = hosts_[draw(kHosts)],
                                             .pool = 0,
                                             .ready = draw(2) == 0,
                                             .order = draw(5) == 0 ? SlotId{} : id,
                                             .type = draw(3) == 0 ? "b" : ""});
            case 6:
                return core_->apply(Provisioned{.session = cloud_,
                                                .slot = id,
                                                .answer = static_cast<Answer>(draw(6)),
                                                .scope = static_cast<Provisioned::Scope>(draw(3))});
            case 7:
                return core_->apply(Provisioned{.session = cloud_, .slot = id});
            case 8:
                return say_of(some_slot(SlotState::kRecovering, SlotState::kUnknown), Kind::kReady);
            case 9:
            case 10:
                return say_of(some_slot(SlotState::kReserved), Kind::kConfirm);
            case 11:
                return say_of(some_slot(SlotState::kReserved), Kind::kRefuse);
            case 12:
                return say_of(some_slot(SlotState::kLeased), Kind::kDone);
            case 13:
                return say_of(some_slot(SlotState::kIdle, SlotState::kRecovering),
                              static_cast<Kind>(4 + draw(3)));
            case 14:
                return provide(draw(2) == 0 ? "a" : "b", draw(3) != 0);
            default:
                return say_rarely(tag);
        }
    }

    void say_rarely(uint16_t tag) {
        uint32_t& host = hosts_[draw(kHosts)];
        const uint32_t claim = core_->claim_of_tag(client_, tag);
        const uint32_t slot = some_slot(SlotState::kIdle, SlotState::kLeased, SlotState::kOrdered);
        switch (draw(5)) {
            case 0:
                core_->session_died(host);
                host = core_->open_session({.uid = 3});
                return;
            case 1:
                core_->session_died(cloud_);
                cloud_ = core_->open_session({.uid = 2});
                return;
            case 2:
                if (claim == shm::kNoRow) return;
                return core_->apply(UpdateClaim{.claim = core_->claim(claim).arrival,
                                                .priority_given = true,
                                                .priority = static_cast<int32_t>(draw(5))});
            case 3:
                if (slot == shm::kNoRow) return;
                core_->apply(
                    Drain{.pool = 0, .on = draw(3) != 0, .number = core_->slot(slot).number});
                return;
            default:
                core_->apply(Drain{.pool = 0, .on = draw(3) == 0});
        }
    }

    std::mt19937 dice_;
    bool dies_;
    shm::Lines storage_;
    std::unique_ptr<Core> core_;
    TimeNs now_ = 0;
    SessionId client_, cloud_;
    uint32_t hosts_[kHosts];
};

TEST(Provisioning, IsTheSameAfterASecondLookOfAnotherBroker) {
    uint32_t created = 0;
    for (uint32_t seed = 1; seed <= 60; ++seed) {
        World one(seed, false);
        World other(seed, true);
        for (uint32_t turn = 0; turn < 120; ++turn) {
            ASSERT_EQ(one.turn(), other.turn()) << "seed " << seed << ", turn " << turn;
            ASSERT_FALSE(HasFailure()) << "seed " << seed << ", turn " << turn;
        }
        created += one.core().pool(0).number_next;
    }
    EXPECT_GT(created, 600U);
}

class WaitForWorkers : public tests::CoreFixture {
  protected:
    WaitForWorkers() : WaitForWorkers(shm::PoolOrder::kPriority) {}
    explicit WaitForWorkers(shm::PoolOrder order) {
        PoolConfig pool{.name = "vm", .kind = shm::PoolKind::kWorker, .units_max = 3};
        pool.order = order;
        pool.workers_max = 4;
        pool.creates_max = 1;
        pool.create_throttle_ns = 20;
        turn(0, [&] {
            core().set_pool(pool, nullptr);
            client_ = core().open_session({.uid = 1});
            cloud_ = core().open_session({.uid = 2});
        });
    }
    void claim(core::TimeNs now, uint16_t tag, const std::vector<std::string_view>& labels = {}) {
        const ClaimTerms terms{.labels = labels};
        turn(now, [&] {
            core().apply(Claim{.session = client_, .tag = tag, .pool = 0, .terms = &terms});
        });
    }
    void provide(core::TimeNs now, bool on) {
        turn(now,
             [&] { core().apply(Provide{.session = cloud_, .pool = 0, .type = "a", .on = on}); });
    }
    void answer(core::TimeNs now, Answer word) {
        turn(now, [&] {
            for (uint32_t row = 0; row < core().slots_max(); ++row) {
                const shm::SlotRow& slot = core().slot(row);
                if (slot.state != SlotState::kOrdered) continue;
                return core().apply(Provisioned{
                    .session = cloud_, .slot = row_id(slot.head.generation, row), .answer = word});
            }
        });
    }
    Explanation why(uint16_t tag) { return core().explain(core().claim_of_tag(client_, tag)); }

    SessionId client_, cloud_;
};

TEST_F(WaitForWorkers, SaysWhatIsMissing) {
    claim(1, 0);
    EXPECT_EQ(why(0).reason, WaitReason::kNoProvisioner);
    EXPECT_EQ(why(0).type, "");
    turn(2, [&] { core().set_type({.name = "a", .pool = "vm", .cost = 1}, nullptr); });
    EXPECT_EQ(why(0).reason, WaitReason::kNoProvisioner);
    EXPECT_EQ(why(0).type, "a");
    provide(3, true);
    EXPECT_EQ(why(0).reason, WaitReason::kBeingMade);
    EXPECT_EQ(why(0).ordered, 1U);
    claim(4, 1);
    EXPECT_EQ(why(1).reason, WaitReason::kBehind);
    EXPECT_EQ(why(1).obstacle, WaitReason::kBeingMade);
    answer(10, Answer::kFailed);
    EXPECT_EQ(why(0).reason, WaitReason::kPausing);
    EXPECT_EQ(why(0).pause_ns, 100'000'000U);
    EXPECT_EQ(why(0).pause, PauseReason::kFailed);
    EXPECT_EQ(why(0).type, "a");
    turn(100'000'010, [] {});
    answer(100'000'011, Answer::kCapacity);
    EXPECT_EQ(why(0).pause, PauseReason::kCapacity);
    turn(70'000'000'000, [] {});
    answer(70'000'000'001, Answer::kOverload);
    EXPECT_EQ(why(0).reason, WaitReason::kPausing);
    EXPECT_EQ(why(0).pause, PauseReason::kThrottle);
    EXPECT_EQ(why(0).pause_ns, 20U);
}

TEST_F(WaitForWorkers, SaysHowManyThereMayBe) {
    turn(2, [&] { core().set_type({.name = "a", .pool = "vm", .cost = 1}, nullptr); });
    provide(3, true);
    claim(4, 0);
    answer(5, Answer::kQuota);
    EXPECT_EQ(why(0).reason, WaitReason::kAtQuota);
    EXPECT_EQ(why(0).limit, 0U);
    EXPECT_EQ(why(0).pause_ns, PoolConfig{}.quota_error_ns);
    turn(6, [&] {
        for (uint32_t worker = 0; worker < 4; ++worker)
            core().apply(Announce{.session = cloud_, .pool = 0, .ready = true});
    });
    for (uint16_t tag = 1; tag < 5; ++tag)
        claim(7, tag);
    EXPECT_EQ(why(4).reason, WaitReason::kAtQuota);
    EXPECT_EQ(why(4).limit, 4U);
}

TEST_F(WaitForWorkers, AreStoppedWhereThePoolIsToGo) {
    turn(2, [&] { core().set_type({.name = "a", .pool = "vm", .cost = 1}, nullptr); });
    provide(3, true);
    claim(4, 0);
    turn(5, [&] {
        core().apply(Announce{.session = cloud_,
                              .pool = 0,
                              .ready = true,
                              .order = row_id(core().slot(0).head.generation, 0)});
    });
    turn(6, [&] { core().apply(Cancel{.session = client_, .tag = 0}); });
    turn(90, [&] {});
    ASSERT_EQ(core().pool(0).slots, 1U);
    turn(91, [&] {
        const shm::SlotRow& slot = core().slot(0);
        core().apply(WorkerWord{.kind = WorkerWord::Kind::kReady,
                                .session = cloud_,
                                .slot = row_id(slot.head.generation, 0),
                                .round = slot.round});
    });
    ASSERT_EQ(core().pool(0).idle, 1U);
    uint32_t stops = 0;
    for (const Decision& decision : turn(92, [&] { core().delete_pool(0, true); }))
        stops += decision.kind == DecisionKind::kStop ? 1 : 0;
    EXPECT_EQ(stops, 1U);
}

// What another process may have left in the rows of an elastic pool is refused, or served.
TEST(Provisioning, SurvivesAnyByteInItsRows) {
    std::mt19937 dice(7);
    uint32_t refused = 0;
    for (uint32_t seed = 1; seed <= 12; ++seed) {
        World world(seed, false);
        for (uint32_t turn = 0; turn < 60; ++turn)
            world.turn();
        const shm::StateHead& head = world.core().head();
        shm::Lines broken(world.rows().size());
        for (uint32_t byte = 0; byte < 300; ++byte) {
            constexpr shm::Table kTables[] = {
                shm::Table::kTypes, shm::Table::kElastics, shm::Table::kSlots, shm::Table::kClaims};
            const shm::TablePlace& place = head.table[static_cast<size_t>(kTables[byte % 4])];
            const uint32_t rows = std::min(place.rows, byte % 4 == 1 ? 1U : 8U);
            std::memcpy(broken.bytes().data(), world.rows().data(), world.rows().size());
            broken.bytes()[place.offset + dice() % (rows * place.row_size)] =
                static_cast<std::byte>(dice() % 3 == 0 ? 0xff : dice() % 9);
            Core::Refusal refusal;
            const std::unique_ptr<Core> core = Core::attach(broken.bytes(), 0, &refusal);
            refused += core == nullptr ? 1 : 0;
            for (uint32_t turn = 0; core != nullptr && turn < 3; ++turn) {
                core->begin_turn(core->now() + 40);
                core->decide();
                core->commit();
                core->clear();
            }
        }
    }
    EXPECT_GT(refused, 100U);
}

class WaitForWorkersByAccount : public WaitForWorkers {
  protected:
    WaitForWorkersByAccount() : WaitForWorkers(shm::PoolOrder::kAccount) {}
    void type(core::TimeNs now, const char* name, uint64_t cost, const char* label) {
        const std::string_view labels[] = {label};
        turn(now, [&] {
            core().set_type({.name = name, .pool = "vm", .cost = cost, .labels = labels}, nullptr);
        });
    }
};

// "a" is the cheapest, and serves none of them.
TEST_F(WaitForWorkersByAccount, NamesTheTypeThatWouldServeIt) {
    type(1, "a", 1, "plain");
    type(1, "b", 5, "gpu");
    type(1, "c", 9, "gpu");
    claim(2, 0, {"gpu"});
    provide(3, true);
    EXPECT_EQ(why(0).reason, WaitReason::kNoProvisioner);
    EXPECT_EQ(why(0).type, "b");
    claim(4, 1, {"plain"});
    EXPECT_EQ(why(1).reason, WaitReason::kBeingMade);
    EXPECT_EQ(why(1).ordered, 1U);
    EXPECT_EQ(why(0).reason, WaitReason::kNoProvisioner);  // what is being made is not for it
    EXPECT_EQ(why(0).ordered, 0U);
    claim(5, 2, {"tpu"});
    EXPECT_EQ(why(2).reason, WaitReason::kLabels);
    EXPECT_EQ(why(2).label, "tpu");
    answer(10, Answer::kFailed);
    EXPECT_EQ(why(1).reason, WaitReason::kPausing);
    EXPECT_EQ(why(1).type, "a");
    EXPECT_EQ(why(0).type, "b");
    turn(11, [&] { core().apply(Provide{.session = cloud_, .pool = 0, .type = "c", .on = true}); });
    EXPECT_EQ(why(0).reason, WaitReason::kBeingMade);  // at "c", while nobody makes "b"
    EXPECT_EQ(why(0).ordered, 1U);
}

}  // namespace
}  // namespace dibs::core
