// tests/process/client_events_test.cpp -- a subscription as a C program has it: what it refuses,
// and that a forked child has none.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"

namespace dibs::test {
namespace {

class ClientEvents : public testing::Test {
  protected:
    ClientEvents() {
        options_.size = sizeof options_;
        options_.socket_path = dibsd_.socket().c_str();
        EXPECT_EQ(dibs_events_open(&options_, &events_), DIBS_OK);
        event_.size = sizeof event_;
    }
    ~ClientEvents() override { EXPECT_EQ(dibs_events_close(events_), DIBS_OK); }

    // Claims, and hears of it.
    void expect_grant() {
        const Attached client(dibsd_.socket(), "tokens");
        const dibs_completion granted = client.claim();
        do {
            ASSERT_EQ(dibs_events_next(events_, DIBS_FOREVER, &event_), DIBS_OK);
        } while (event_.kind != DIBS_EVENT_GRANT);
        EXPECT_EQ(event_.fence, granted.lease.fence);
    }

    const Folder folder_;
    const Dibsd dibsd_{folder_, kCounted};
    dibs_connect_options options_ = {};
    dibs_events* events_ = nullptr;
    dibs_event event_ = {};
};

TEST_F(ClientEvents, AreRefusedToAForkedChildAndTheParentGoesOn) {
    expect_grant();
    const pid_t child = fork();
    if (child == 0) {
        if (dibs_events_next(events_, 0, &event_) != DIBS_EFORK) _exit(1);
        if (dibs_events_fd(events_) != DIBS_EFORK) _exit(2);
        _exit(dibs_events_close(events_) == DIBS_EFORK ? 0 : 3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    expect_grant();
}

TEST_F(ClientEvents, RefuseWhatIsNoQuestion) {
    EXPECT_EQ(dibs_events_next(nullptr, 0, &event_), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_events_next(events_, 0, nullptr), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_events_next(events_, -5, &event_), DIBS_ENEGATIVE);
    EXPECT_EQ(dibs_events_fd(nullptr), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_events_close(nullptr), DIBS_OK);
    event_.size = 1;
    EXPECT_EQ(dibs_events_next(events_, 0, &event_), DIBS_ESIZE);
    event_.size = sizeof event_;
    EXPECT_EQ(dibs_events_next(events_, 0, &event_), DIBS_ETIMEDOUT);
    expect_grant();
}

}  // namespace
}  // namespace dibs::test
