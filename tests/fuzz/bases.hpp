// tests/fuzz/bases.hpp -- states that a broker may have left, for inputs that change some of their
// bytes; and all that somebody may ask of a broker that goes on from there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "broker/core/core.hpp"
#include "shm/lines.hpp"

namespace dibs::fuzz {

// One after the other:
//   a random conversation of some three hundred turns, in pools of all kinds
//   slots that are paid for: a promised claim behind a lease that is being revoked, a claim of
//     several units under label limits, one that runs in the free class, others that wait
//   workers that are paid for, attached ones with labels in every state, and reported ones: with
//     assignments that they have not confirmed, promised to another, under a killed holder's lease
//   claims over several pools that wait and that confirm; leases of such claims, live, in grace,
//   and
//     with a holder that is being killed
inline constexpr size_t kBases = 4;

// `open`: the last turn of the first one is not committed.
shm::Lines make_base(size_t base, bool open);

// Turns in which time passes, more is asked, and everybody goes. What holds at first holds after
// them, and with `each`, which takes most of the time, after each.
void serve(core::Core& broker, bool each);

}  // namespace dibs::fuzz
