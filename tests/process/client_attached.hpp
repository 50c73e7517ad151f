// tests/process/client_attached.hpp -- libdibs attached to a real dibsd, with short names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "dibs/dibs.h"

namespace dibs::test {

class Attached {
  public:
    Attached(const std::string& socket, const char* pool, dibs_connect_options options = {}) {
        options.size = sizeof options;
        options.socket_path = socket.c_str();
        options.timeout_ns = 10 * DIBS_SECOND;
        EXPECT_EQ(dibs_connect(&options, &session_), DIBS_OK);
        EXPECT_EQ(dibs_pool(session_, pool, &pool_), DIBS_OK);
    }
    ~Attached() { dibs_close(session_); }
    Attached(const Attached&) = delete;
    Attached& operator=(const Attached&) = delete;

    operator dibs_session*() const { return session_; }  // NOLINT: as the C interface takes it
    [[nodiscard]] uint32_t pool() const { return pool_; }

    // Of a claim whose end is reaped later: its ticket.
    uint64_t submit(const dibs_claim_options* options = nullptr, uint64_t user_data = 0) const {
        dibs_op op = {};
        op.size = sizeof op;
        op.kind = DIBS_OP_CLAIM;
        op.pool = pool_;
        op.claim = options;
        op.user_data = user_data;
        EXPECT_EQ(dibs_submit(session_, &op, 1), 1);
        return op.ticket;
    }
    // What the broker says, however late. dibs_claim would end it 20 ms after its timeout.
    [[nodiscard]] dibs_completion claim(const dibs_claim_options& options) const {
        if (options.timeout_ns == DIBS_FOREVER) return claim_in_time(options);
        submit(&options);
        dibs_completion end = {};
        EXPECT_EQ(dibs_reap(session_, &end, 1, DIBS_FOREVER), 1);
        return end;
    }
    [[nodiscard]] dibs_completion claim_in_time(const dibs_claim_options& options) const {
        dibs_completion end = {};
        EXPECT_EQ(dibs_claim(session_, pool_, &options, &end), DIBS_OK);
        return end;
    }
    [[nodiscard]] dibs_completion claim() const { return claim(asking(DIBS_FOREVER)); }
    [[nodiscard]] dibs_counters counters() const {
        dibs_counters counters = {};
        counters.size = sizeof counters;
        EXPECT_EQ(dibs_snapshot(session_, pool_, &counters), DIBS_OK);
        return counters;
    }
    // Looks until the counters are as `wanted` says.
    template <typename Wanted>
    void await(Wanted wanted) const {
        while (!wanted(counters()))
            sched_yield();
    }
    static dibs_claim_options asking(int64_t timeout_ns, uint32_t units = 1) {
        dibs_claim_options options = {};
        options.size = sizeof options;
        options.timeout_ns = timeout_ns;
        options.units = units;
        return options;
    }

  private:
    dibs_session* session_ = nullptr;
    uint32_t pool_ = 0;
};

}  // namespace dibs::test
