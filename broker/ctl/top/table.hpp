// broker/ctl/top/table.hpp -- the four parts of the picture, each a sheet with named rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/top/facts.hpp"

namespace dibs::ctl::top {

enum class Part : uint8_t { kPools, kAccounts, kClaims, kLeases };
inline constexpr size_t kParts = 4;

// A row of a part, by the name that stays its own: a pool's or account's, c12, l12.
struct RowName {
    Part part = Part::kPools;
    std::string name;
    bool operator==(const RowName&) const = default;
};

enum class LeaseOrder : uint8_t { kHeld, kUser, kPool, kCommand };
std::string_view word(LeaseOrder order);

struct Table {
    Sheet sheet;
    std::vector<std::string> names;  // of the rows; empty: another user's, which has none
};

// Pools, accounts, the oldest claims, leases.
std::array<Table, kParts> tables(const Facts& facts, LeaseOrder order);

}  // namespace dibs::ctl::top
