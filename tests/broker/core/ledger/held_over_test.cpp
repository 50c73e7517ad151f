// tests/broker/core/ledger/held_over_test.cpp -- slots that were paid for while as many workers are
// asked as may be (S0.22): what is told of them, a turn that is cut among them, a takeover.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>

#include "broker/core/parts.hpp"
#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {
namespace {

using core::DecisionKind;

core::Limits many_slots() {
    core::Limits limits;
    limits.slots = 4096;
    limits.claims = 8192;
    limits.sessions = 16;
    return limits;
}

// `count` workers, each of which a claim for free has held and given up to a claim that paid. Their
// slots are held over while one more worker is asked.
class HeldOver : public CoreFixture {
  protected:
    static constexpr uint32_t kTags = 1000;  // of a session
    static uint16_t tag_of(uint32_t at) { return static_cast<uint16_t>(at % kTags); }

    HeldOver() : CoreFixture(many_slots()) {
        worker_ = session();
        for (size_t at = 0; at < cheap_.size(); ++at) {
            cheap_[at] = session();
            paying_[at] = session();
        }
        turn(0, [&] { pool_ = core().set_pool(config(4000), nullptr); });
        const std::array<int64_t, 1> balance = {1'000'000'000'000};
        core::AccountConfig account;
        account.name = "payer";
        account.balance = balance;
        turn(0, [&] { EXPECT_TRUE(core().set_account(account, nullptr)); });
    }

    static core::PoolConfig config(uint32_t unconfirmed_max) {
        core::PoolConfig config;
        config.name = "box";
        config.kind = shm::PoolKind::kWorker;
        config.order = shm::PoolOrder::kAccount;
        config.unconfirmed_max = unconfirmed_max;
        return config;
    }
    void say(core::WorkerWord::Kind kind, uint32_t slot) {
        core().apply(core::WorkerWord{.kind = kind,
                                      .session = worker_,
                                      .slot = core::row_id(core().slot(slot).head.generation, slot),
                                      .round = core().slot(slot).round});
    }
    void announce() {
        core().apply(core::Announce{.session = worker_, .pool = pool_, .ready = true});
    }
    void hold_over(uint32_t count) {
        in_pieces(count, [&](uint32_t at) {
            announce();
            claim(cheap_[at / kTags], tag_of(at), pool_);
        });
        in_pieces(count, [&](uint32_t slot) { say(core::WorkerWord::Kind::kConfirm, slot); });
        turn(1, [&] {
            EXPECT_EQ(core().set_pool(config(1), nullptr), pool_);
            announce();
            claim(cheap_[count / kTags], tag_of(count), pool_);
        });
        asked_ = count;
        ASSERT_EQ(core().slot(asked_).state, shm::SlotState::kReserved);
        in_pieces(count, [&](uint32_t at) {
            core::ClaimTerms terms;
            terms.account = "payer";
            core::Claim command;
            command.session = paying_[at / kTags];
            command.tag = tag_of(at);
            command.pool = pool_;
            command.terms = &terms;
            core().apply(command);
        });
        // The other way round than their claims came.
        in_pieces(count, [&](uint32_t at) { say(core::WorkerWord::Kind::kReady, count - 1 - at); });
        for (uint32_t slot = 0; slot < count; ++slot) {
            ASSERT_EQ(core().slot(slot).state, shm::SlotState::kRecovering);
            ASSERT_EQ(core().slot(slot).flags, shm::SlotFlag::kSaidReady);
        }
    }
    template <class Command>
    void in_pieces(uint32_t count, const Command& command) {
        for (uint32_t from = 0; from < count; from += 64) {
            turn(1, [&] {
                for (uint32_t at = from; at < std::min(from + 64, count); ++at)
                    command(at);
            });
        }
    }
    [[nodiscard]] static std::vector<uint64_t> assigned(std::span<const core::Decision> decided) {
        std::vector<uint64_t> claims;
        for (const core::Decision& decision : decided) {
            if (decision.kind == DecisionKind::kAssign) claims.push_back(decision.claim);
        }
        return claims;
    }
    [[nodiscard]] uint32_t paid(uint32_t at) {
        return core().claim_of_tag(paying_[at / kTags], tag_of(at));
    }
    [[nodiscard]] std::vector<uint64_t> numbers(uint32_t count) {
        std::vector<uint64_t> all;
        for (uint32_t at = 0; at < count; ++at)
            all.push_back(core().claim(paid(at)).arrival);
        return all;
    }

    uint32_t worker_ = shm::kNoRow;
    std::array<uint32_t, 3> cheap_ = {};
    std::array<uint32_t, 3> paying_ = {};
    uint32_t pool_ = shm::kNoRow;
    uint32_t asked_ = shm::kNoRow;
};

TEST_F(HeldOver, ClaimsAreToldThatTheyArePromisedASlotThatNobodyHolds) {
    hold_over(2);
    const core::Explanation told = core().explain(paid(1));
    EXPECT_EQ(told.reason, core::WaitReason::kPromised);
    EXPECT_EQ(told.holder, shm::kNoRow);
    EXPECT_EQ(told.class_reason, core::ClassReason::kBalance);
}

TEST_F(HeldOver, SlotsAreHandedOverInOrderByTurnsThatAreCut) {
    constexpr uint32_t kCount = 2000;  // more than a turn's log holds
    hold_over(kCount);
    const std::vector<uint64_t> expected = numbers(kCount);
    const auto decided = turn(2, [&] { core().set_pool(config(4000), nullptr); });
    EXPECT_GE(cuts(), 1);
    EXPECT_EQ(assigned(decided), expected);
}

TEST_F(HeldOver, SlotsAreHandedOverInOrderByWhoTakesOverBetweenTwoParts) {
    constexpr uint32_t kCount = 2000;  // more than a turn's log holds
    hold_over(kCount);
    const std::vector<uint64_t> expected = numbers(kCount);
    core().begin_turn(2);
    core().set_pool(config(4000), nullptr);
    core().decide();
    core().commit();
    std::vector<uint64_t> got = assigned(core().decisions());
    ASSERT_TRUE(core().work_left());
    ASSERT_LT(got.size(), kCount);
    attach();
    ASSERT_EQ(core().check_all(), std::vector<std::string>{});
    const std::vector<uint64_t> rest = assigned(turn(3, [] {}));
    got.insert(got.end(), rest.begin(), rest.end());
    EXPECT_EQ(got, expected);
}

TEST_F(HeldOver, SlotsAreHeldOverStillBehindATakeover) {
    hold_over(3);
    const std::vector<uint64_t> expected = numbers(3);
    attach();
    EXPECT_EQ(assigned(turn(2, [] {})), std::vector<uint64_t>{});
    for (uint32_t tag = 0; tag < 3; ++tag) {
        const auto decided = turn(3 + tag, [&] { say(core::WorkerWord::Kind::kConfirm, asked_); });
        const std::vector<uint64_t> next = assigned(decided);
        ASSERT_EQ(next, std::vector<uint64_t>{expected[tag]});
        asked_ = core().claim(paid(tag)).first_slot;
    }
}

TEST_F(HeldOver, MistakesAreEachFound) {
    hold_over(2);
    const std::vector<std::pair<const char*, std::function<void(core::Core::Parts&)>>> mistakes = {
        {"is listed twice", [&](core::Core::Parts& p) { p.book->held_over[pool_].push_back(1); }},
        {"would never be handed over",
         [&](core::Core::Parts& p) { p.book->held_over[pool_].pop_back(); }},
        {"though its worker may be asked",
         [&](core::Core::Parts& p) {
             p.dirty.clear();
             const_cast<shm::PoolRow&>(p.state.pools[pool_]).unconfirmed_max = 2;
         }},
        {"held over for nobody",
         [&](core::Core::Parts& p) { p.book->promised_to[1] = shm::kNoRow; }},
    };
    for (const auto& [found, make] : mistakes) {
        core::Core::Parts parts(memory(), 0);
        parts.rebuild();
        parts.dirty.clear();  // as after a turn that had nothing left to do
        ASSERT_EQ(parts.check_all(), std::vector<std::string>{});
        const std::vector<std::byte> before(memory().begin(), memory().end());
        make(parts);
        const std::vector<std::string> wrongs = parts.check_all();
        std::copy(before.begin(), before.end(), memory().begin());
        const std::string_view what = found;
        EXPECT_TRUE(std::any_of(wrongs.begin(), wrongs.end(), [&](const std::string& wrong) {
            return wrong.find(what) != std::string::npos;
        })) << what;
    }
}

TEST_F(HeldOver, NoSlotThatSaidReadyIsForgottenByWhoTakesOver) {
    hold_over(1);
    turn(2, [&] { say(core::WorkerWord::Kind::kConfirm, asked_); });
    turn(2, [&] { say(core::WorkerWord::Kind::kConfirm, 0); });
    turn(2, [&] { core().apply(core::Cancel{.session = paying_[0], .tag = 0}); });
    auto& row = const_cast<shm::SlotRow&>(core().slot(0));
    ASSERT_EQ(row.state, shm::SlotState::kRecovering);
    ASSERT_EQ(row.flags, 0U);
    row.flags = shm::SlotFlag::kSaidReady;
    core::Core::Refusal refusal;
    EXPECT_EQ(core::Core::attach(memory(), 7, &refusal, 3), nullptr);
    EXPECT_EQ(refusal.unsound, "");
    EXPECT_EQ(refusal.wrong,
              std::vector<std::string>{
                  "slot row 0 has said ready, is not idle, and held over for nobody"});
    row.flags = 0;
    EXPECT_NE(core::Core::attach(memory(), 7, &refusal, 3), nullptr);
}

}  // namespace
}  // namespace dibs::tests
