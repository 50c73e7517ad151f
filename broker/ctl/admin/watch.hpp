// broker/ctl/admin/watch.hpp -- repeats a listing at intervals, over one kept conversation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/output/output.hpp"

namespace dibs::ctl {

// Shows it every `period_ns` until something ends it or its reader is gone. On a terminal in place
// of the last time, below `title`, as far as there are lines; elsewhere one behind the other. A
// broker that goes is waited for, but not the first time (Failure).
int watch(Output& output,
          const std::string& title,
          int64_t period_ns,
          const std::function<void(AdminClient&)>& show);

}  // namespace dibs::ctl
