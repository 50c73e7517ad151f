// tests/clientlib/fixture.hpp -- a session with a fake broker, and short names for the usual.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "dibs/dibs.h"
#include "tests/clientlib/fake_broker.hpp"

namespace dibs::test {

using shm::Op;
using shm::Outcome;
using shm::Reason;
using shm::Submission;

class Client {
  public:
    explicit Client(FakeBroker& broker, dibs_connect_options options = {}) {
        options.size = sizeof options;
        options.socket_path = broker.path().c_str();
        EXPECT_EQ(dibs_connect(&options, &session_), DIBS_OK);
    }
    ~Client() { dibs_close(session_); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    [[nodiscard]] dibs_session* get() const { return session_; }
    operator dibs_session*() const { return session_; }  // NOLINT: as the C interface takes it

    // A claim of one unit of pool 0.
    dibs_completion claim(int64_t timeout_ns = DIBS_FOREVER, int64_t interval_ns = 0) const {
        dibs_claim_options options = {};
        options.size = sizeof options;
        options.timeout_ns = timeout_ns;
        options.interval_ns = interval_ns;
        dibs_completion end = {};
        EXPECT_EQ(dibs_claim(session_, 0, &options, &end), DIBS_OK);
        return end;
    }

  private:
    dibs_session* session_ = nullptr;
};

inline dibs_op operation(int32_t kind, uint64_t user_data) {
    dibs_op op = {};
    op.size = sizeof op;
    op.kind = kind;
    op.user_data = user_data;
    return op;
}

}  // namespace dibs::test
