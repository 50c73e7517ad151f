// broker/ctl/exec/grant.hpp -- the claim behind a command: made once, told in words if it ends
// without a lease.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "broker/ctl/attachment.hpp"
#include "broker/ctl/exec/options.hpp"

namespace dibs::ctl::exec {

// Claims and waits. Failure: with the exit code that the options ask for where nothing was free or
// the time passed, and with who holds what was wanted.
dibs_completion claim(const Attachment& attachment, uint32_t pool, const Options& options);

// Behind DIBS_EDRAINING: whether it is the pool or the whole broker that drains, and what ends
// that.
std::string what_drains(const Options& options);

}  // namespace dibs::ctl::exec
