// tests/naive/decision_line.hpp -- a decision in words that two cores share: no row appears in it.
//
// Claims by their number, slots by pool and number, sessions by their label, leases by their
// claim's number and fence. Only the fields that decision.hpp names for a kind are looked at.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/decision.hpp"

namespace dibs::naive {

struct Holder {
    uint32_t uid = shm::kNoRow;
    uint32_t pid = 0;
    uint64_t claim = 0;
    uint64_t age_ns = 0;
    bool operator==(const Holder&) const = default;
};

struct DecisionLine {
    core::DecisionKind kind = core::DecisionKind::kResult;
    shm::Outcome outcome = shm::Outcome::kNone;
    shm::Reason reason = shm::Reason::kOk;
    uint32_t session = shm::kNoRow;  // label
    uint32_t pool = shm::kNoRow;     // label
    uint32_t slot = shm::kNoRow;     // number in its pool
    uint16_t tag = 0;
    uint16_t units = 0;
    uint64_t claim = 0;
    uint64_t user_data = 0;
    uint64_t first_claim = 0;  // duplicate: whose key it is
    uint64_t fence = 0;
    uint64_t value = 0;
    uint32_t round = 0;
    uint32_t place = 0;  // kAnswer
    uint32_t part = 0;   // of a claim over several pools
    std::vector<uint32_t> slots;
    std::vector<int64_t> resources;
    uint32_t account = shm::kNoRow;  // its place
    uint64_t other_claim = 0;        // victim, or what a worker is to abort
    uint8_t from_class = 0;
    uint8_t to_class = 0;
    bool provision = false;
    bool may_park = false;
    bool has_class = false;
    bool is_void = false;
    std::vector<int64_t> cost;
    std::string type;   // its name
    std::string entry;  // its name
    std::vector<uint8_t> answer;
    Holder holder;
    bool operator==(const DecisionLine&) const = default;
};

std::string to_string(const DecisionLine& line);

}  // namespace dibs::naive
