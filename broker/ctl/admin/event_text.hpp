// broker/ctl/admin/event_text.hpp -- prints an event of the broker as a line of text or JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "dibs/dibs.h"

namespace dibs::ctl {

// "4.812s grant gpu claim 3 …", without a newline.
std::string event_text(const dibs_event& event);
// One object; schema dibs.events/1. A key is there where it means something for this event.
std::string event_json(const dibs_event& event);

}  // namespace dibs::ctl
