// broker/admin/measured.hpp -- reports the broker's measurements to admin clients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/admin/admin.hpp"
#include "broker/core/core.hpp"
#include "broker/turn/publish.hpp"

namespace dibs {

// Adds to the pools and the status that the answer has, if the request wants them so.
void tell_measured(const core::Core& core, const Publisher& publisher, AdminJob* job);

}  // namespace dibs
