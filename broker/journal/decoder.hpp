// broker/journal/decoder.hpp -- applies a recording's commands to another core.
//
// Rows, tags and ids stand as they were. They are checked before the core sees them: a broker
// checks what it feeds the core, and the file may have been changed since.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/core/core.hpp"
#include "schemas/journal_generated.h"

namespace dibs::ctl {

// Inside an open turn. Throws JournalError if a broker could not have given it.
void give(core::Core& core, const journal::Given& given);

}  // namespace dibs::ctl
