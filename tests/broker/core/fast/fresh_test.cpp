// tests/broker/core/fast/fresh_test.cpp -- a claim without a row says what its command said.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/fast/fresh.hpp"

#include "tests/broker/core/core_fixture.hpp"

namespace dibs::tests {

namespace {

class Fresh : public CoreFixture {
  protected:
    // Each of its fields that a claim without a row may have is another than by default.
    static core::Claim unlike_any(uint32_t session, uint32_t pool) {
        core::Claim command;
        command.session = session;
        command.tag = 7;
        command.units = 2;
        command.pool = pool;
        command.user_data = 0x0123456789abcdef;
        command.timeout_ns = 30 * kSecond;
        command.interval_ns = 5 * kSecond;
        command.when_busy_given = true;
        command.when_busy = shm::WhenBusy::kReject;
        command.room = 40;
        command.room_lines = 3;
        command.priority = -4;
        return command;
    }

    const uint32_t pool_ = counted_pool("counted", 4);
    const uint32_t session_ = session();
};

// The row is made when what may touch the claim comes before its pass: here, other settings.
TEST_F(Fresh, GetsTheRowThatItsCommandWouldHaveGot) {
    core::PoolConfig config;
    config.name = "counted";
    config.slots = 4;
    config.interval_max_ns = 60 * kSecond;
    const core::Claim command = unlike_any(session_, pool_);
    core().begin_turn(kSecond);
    core().apply(command);
    EXPECT_EQ(core().counters().claims_free, core().claims_max()) << "it has a row at once";
    ASSERT_EQ(core().set_pool(config, nullptr), pool_);
    ASSERT_EQ(core().counters().claims_free, core().claims_max() - 1);
    const shm::ClaimRow& row = core().claim(0);
    EXPECT_EQ(row.session, command.session);
    EXPECT_EQ(row.tag, command.tag);
    EXPECT_EQ(row.units, command.units);
    EXPECT_EQ(row.pool, command.pool);
    EXPECT_EQ(row.user_data, command.user_data);
    EXPECT_EQ(row.deadline_ns, kSecond + command.timeout_ns);
    EXPECT_EQ(row.interval_ns, command.interval_ns);
    EXPECT_EQ(row.flags, shm::ClaimFlag::kReject);
    EXPECT_EQ(row.room, command.room);
    EXPECT_EQ(row.room_lines, command.room_lines);
    EXPECT_EQ(row.priority, command.priority);
    core().decide();
    core().commit();
    core().clear();
    EXPECT_EQ(core().pool(pool_).leased, 2U);
    EXPECT_EQ(core().check_all(), std::vector<std::string>{});
}

// One that was granted from where it stood says the same in its lease and to its holder.
TEST_F(Fresh, GrantsWhatItsCommandAskedFor) {
    core::PoolConfig config;
    config.name = "counted";
    config.slots = 4;
    config.interval_max_ns = 60 * kSecond;
    turn(1, [&] { ASSERT_EQ(core().set_pool(config, nullptr), pool_); });
    const core::Claim command = unlike_any(session_, pool_);
    const auto decided = turn(2, [&] {
        core().apply(command);
        EXPECT_EQ(core().counters().claims_free, core().claims_max());
    });
    ASSERT_EQ(decided.size(), 1U);
    EXPECT_EQ(decided[0].kind, core::DecisionKind::kGrant);
    EXPECT_EQ(decided[0].tag, command.tag);
    EXPECT_EQ(decided[0].units, command.units);
    EXPECT_EQ(decided[0].user_data, command.user_data);
    EXPECT_EQ(decided[0].room, command.room);
    const shm::LeaseRow& lease = core().lease(static_cast<uint32_t>(decided[0].id));
    EXPECT_EQ(lease.session, command.session);
    EXPECT_EQ(lease.tag, command.tag);
    EXPECT_EQ(lease.units, command.units);
    EXPECT_EQ(lease.user_data, command.user_data);
    EXPECT_EQ(lease.interval_ns, command.interval_ns);
    EXPECT_EQ(lease.room, command.room);
    EXPECT_EQ(lease.room_lines, command.room_lines);
}

}  // namespace

}  // namespace dibs::tests
