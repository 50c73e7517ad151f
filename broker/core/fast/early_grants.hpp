// broker/core/fast/early_grants.hpp -- answers plain claims before a row or a turn is theirs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/core/fast/fresh.hpp"
#include "broker/core/module.hpp"

namespace dibs::core {

struct EarlyGrants : Module<EarlyGrants> {
    explicit EarlyGrants(const State& rows) : Module(rows) {}

    void keep_pledge(const Claim& command);
    void keep_owed_pledge();

    // fresh.cpp
    [[nodiscard]] bool may_stay_fresh(const Claim& command) const;
    void stay_fresh(const Claim& command, uint64_t number);
    void serve_fresh(uint32_t pool);
    void settle_fresh();
    [[nodiscard]] uint32_t fresh_claims(uint32_t uid) const;

    // pledge.cpp
    [[nodiscard]] bool nothing_goes_on() const;
};

}  // namespace dibs::core
