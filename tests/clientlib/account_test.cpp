// tests/clientlib/account_test.cpp -- accounts and their shares as the BOARD shows them.
// SPDX-License-Identifier: Apache-2.0
#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

class Account : public testing::Test {
  protected:
    shm::BoardAccount& place(uint32_t at) {
        return reinterpret_cast<shm::BoardAccount*>(broker_.board() +
                                                    shm::plan_board(8).accounts)[at];
    }
    void publish(uint32_t at, const std::string& name, shm::AccountPicture picture) {
        picture.name_size = static_cast<uint8_t>(name.size());
        name.copy(picture.name, sizeof picture.name);
        shm::board_write(place(at), picture);
    }
    void set_time(uint64_t ns) {
        reinterpret_cast<shm::BoardHead*>(broker_.board())->time_ns.store(ns);
    }

    FakeBroker broker_;
};

TEST_F(Account, IsFoundByItsName) {
    publish(1, std::string(63, 'n'), {.state = shm::BoardAccountState::kKnown});
    publish(2, "web", {.state = shm::BoardAccountState::kConfigured});
    Client client(broker_);
    uint32_t at = 9;
    EXPECT_EQ(dibs_account(client, "web", &at), DIBS_OK);
    EXPECT_EQ(at, 2U);
    EXPECT_EQ(dibs_account(client, std::string(63, 'n').c_str(), &at), DIBS_OK);
    EXPECT_EQ(at, 1U);
    EXPECT_EQ(dibs_account(client, "we", &at), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_account(client, "", &at), DIBS_ENAME);
    EXPECT_EQ(dibs_account(client, std::string(64, 'n').c_str(), &at), DIBS_ENAME);
    EXPECT_EQ(dibs_account(client, nullptr, &at), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_account(client, "web", nullptr), DIBS_EARGUMENT);
}

TEST_F(Account, SaysWhatItMayHaveAndWhatItHasHad) {
    publish(0,
            "web",
            {.used_us = 5'000,
             .time_ns = 10'000'000,
             .counted_since_ns = 2'000'000,
             .rate = 2'500'000,
             .held = 3,
             .waiting = 7,
             .state = shm::BoardAccountState::kConfigured});
    set_time(10'400'000);  // 0.4 ms later: three slots, 1.2 ms more
    Client client(broker_);
    dibs_share share = {};
    EXPECT_EQ(dibs_account_share(client, 0, &share), DIBS_ESIZE);
    share.size = sizeof share;
    ASSERT_EQ(dibs_account_share(client, 0, &share), DIBS_OK);
    EXPECT_STREQ(share.name, "web");
    EXPECT_EQ(share.configured, 1);
    EXPECT_EQ(share.held, 3U);
    EXPECT_EQ(share.waiting, 7U);
    EXPECT_EQ(share.rate, 2'500'000U);
    EXPECT_EQ(share.used_ns, 6'200'000U);
    EXPECT_EQ(share.counted_ns, 8'400'000U);
    set_time(9'000'000);  // of an earlier turn than the block
    ASSERT_EQ(dibs_account_share(client, 0, &share), DIBS_OK);
    EXPECT_EQ(share.used_ns, 5'000'000U);
    EXPECT_EQ(share.counted_ns, 8'000'000U);
}

TEST_F(Account, HasAPlaceThatMayBeEmptyTornOrNone) {
    Client client(broker_);
    dibs_share share = {};
    share.size = sizeof share;
    EXPECT_EQ(dibs_account_share(client, 0, &share), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_account_share(client, 2, &share), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_account_share(client, 3, &share), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_account_share(client, 0, nullptr), DIBS_EARGUMENT);
    place(0).sequence.fetch_add(1);
    EXPECT_EQ(dibs_account_share(client, 0, &share), DIBS_ETORN);
}

}  // namespace
}  // namespace dibs::test
