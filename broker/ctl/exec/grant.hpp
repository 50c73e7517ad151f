// broker/ctl/exec/grant.hpp -- makes the claim for a command.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/ctl/attachment.hpp"
#include "broker/ctl/exec/options.hpp"

namespace dibs::ctl::exec {

// Claims and waits. Failure: with the exit code that the options ask for where nothing was free or
// the time passed, and with the holder of what was wanted.
dibs_completion claim(const Attachment& attachment, uint32_t pool, const Options& options);

}  // namespace dibs::ctl::exec
