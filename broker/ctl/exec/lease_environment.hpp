// broker/ctl/exec/lease_environment.hpp -- describes a lease in environment variables.
//
//   DIBS_POOL    the pool's name
//   DIBS_SLOT    the slots' numbers: "3", "3,5"
//   DIBS_LEASE   the lease's id, "l0x100000000", as dibs show and dibs release take it
//   DIBS_FENCE   larger than that of every earlier grant of the pool
//   DIBS_ATTR_X  the slots' attribute "x", one value per slot, with commas between
//   DIBS_SOCKET  where the broker is, if --socket said so
//
// Further variables come from --env VARIABLE=ATTRIBUTE, and from the pool: an attribute
// "env.VARIABLE" sets VARIABLE. That is the administrator's word, so only of counted pools, whose
// attributes are the broker's configuration; a worker's attributes set nothing but DIBS_ATTR_X.
//
// Of a variable that says which GPUs a program sees, DIBS_LIMIT_VARIABLE says what it was set to
// and what that had to stay within, for a `dibs exec` under the command.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "broker/ctl/attachment.hpp"
#include "broker/ctl/exec/options.hpp"

namespace dibs::ctl::exec {

// The whole environment of the command: what is inherited, without variables of another lease, and
// what the lease adds. Failure: a slot lacks an attribute that --env names, or its GPU is outside
// of an inherited mask (device_mask.hpp).
std::vector<std::string> lease_environment(const Attachment& attachment,
                                           uint32_t pool,
                                           const dibs_lease& lease,
                                           const Options& options);

}  // namespace dibs::ctl::exec
