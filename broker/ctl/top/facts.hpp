// broker/ctl/top/facts.hpp -- holds what one look at the broker has found.
//
// A look costs a bounded number of requests, whatever the size of the tables: of claims and leases
// the first kRowsMost rows are taken, and the reasons of the oldest kReasonsMost claims are asked
// for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "broker/ctl/admin/admin_client.hpp"
#include "schemas/admin_generated.h"

namespace dibs::ctl::top {

inline constexpr size_t kRowsMost = 4096;
inline constexpr size_t kReasonsMost = 20;

struct Facts {
    std::string socket;
    Viewpoint from;
    int64_t taken_ns = 0;  // monotonic
    std::unique_ptr<admin::StatusT> status;
    std::vector<std::unique_ptr<admin::PoolT>> pools;
    std::vector<std::unique_ptr<admin::AccountT>> accounts;
    std::vector<std::unique_ptr<admin::ClaimT>> claims;  // the oldest first
    std::vector<std::unique_ptr<admin::LeaseT>> leases;  // likewise
    bool cut = false;                                    // there are more claims or leases
    std::map<uint64_t, std::string> reasons;             // by the claim's number
    std::map<std::string, double> granted_per_second;    // by pool; since the look before
};

// `before`: the last look, or null. Failure.
Facts look(AdminClient& client, const Facts* before);

}  // namespace dibs::ctl::top
