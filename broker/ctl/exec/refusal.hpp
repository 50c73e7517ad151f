// broker/ctl/exec/refusal.hpp -- says why a claim got no lease.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "broker/ctl/attachment.hpp"
#include "broker/ctl/exec/options.hpp"
#include "broker/ctl/exec/waiting.hpp"
#include "broker/ctl/failure.hpp"

namespace dibs::ctl::exec {

// `asked_of`: the pool, or the set, that the claim was for.
Failure not_granted(const Awaited& awaited,
                    const Options& options,
                    const Attachment& attachment,
                    uint32_t asked_of);

// Behind DIBS_EDRAINING: whether it is the pool or the whole broker that drains, and what ends
// that.
std::string what_drains(const Options& options);

}  // namespace dibs::ctl::exec
