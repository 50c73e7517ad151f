// tests/broker/admission/opening_test.cpp -- a session that cannot begin: who is told what, and
// what stays.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "broker/segments/mapping.hpp"
#include "broker/turn/turn.hpp"
#include "shm/memfd.hpp"

namespace dibs::test {
namespace {

core::Limits few_rows() {
    core::Limits limits;
    limits.pools = 1;
    limits.sessions = 2;
    return limits;
}

// A turn with no session yet, and one that could be opened.
class Opening : public testing::Test {
  private:
    std::span<std::byte> formatted() const {
        core::format_state(mapping_.bytes(), limits_);
        return mapping_.bytes();
    }

    const core::Limits limits_ = few_rows();
    const shm::Descriptor state_ = shm::make_memfd("state", core::state_size(limits_));
    const Mapping mapping_{state_.get(), core::state_size(limits_)};
    BoardSegment board_{limits_.pools};

  protected:
    core::Core core{formatted()};
    Exchange exchange{limits_.sessions};
    Turn turn{core, board_, exchange};
    std::unique_ptr<Session> session = std::make_unique<Session>(Peer{}, shm::SessionSizes{});
};

TEST_F(Opening, ASessionWhoseDoorbellCannotBeWatchedIsHandedBackWithTheReason) {
    session->bell.reset();  // epoll cannot watch what is not there
    ASSERT_TRUE(exchange.ask({.kind = Request::Kind::kSession, .session = session.get()}));
    ASSERT_TRUE(exchange.ask({.kind = Request::Kind::kStop}));
    turn.serve();
    Report report;
    ASSERT_TRUE(exchange.next(report));
    EXPECT_EQ(report.kind, Report::Kind::kFull);
    EXPECT_EQ(report.session, session.get());
    EXPECT_EQ(std::string(report.why), "the kernel has no room for a doorbell");
    ASSERT_TRUE(exchange.next(report));
    EXPECT_EQ(report.kind, Report::Kind::kFinished);
    EXPECT_NE(core.session(session->row).state, shm::SessionState::kOpen);
    EXPECT_EQ(core.check_all(), std::vector<std::string>{});
}

// It would be a session of a STATE that nobody goes on from, and the keeper would hold it for one
// of the other.
TEST_F(Opening, ASessionBehindALoadIsNotBegun) {
    ASSERT_TRUE(exchange.ask({.kind = Request::Kind::kReplace}));
    ASSERT_TRUE(exchange.ask({.kind = Request::Kind::kSession, .session = session.get()}));
    turn.serve();
    Report report;
    ASSERT_TRUE(exchange.next(report));
    EXPECT_EQ(report.kind, Report::Kind::kReplaced);
    EXPECT_EQ(std::string(report.why), "");
    ASSERT_TRUE(exchange.next(report));
    EXPECT_EQ(report.kind, Report::Kind::kFinished);
    EXPECT_FALSE(exchange.next(report));
    EXPECT_EQ(core.session(0).state, shm::SessionState::kFree);
}

}  // namespace
}  // namespace dibs::test
