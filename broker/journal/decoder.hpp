// broker/journal/decoder.hpp -- the commands of a recording: what a live broker's core was given,
// given to another one.
//
// Rows, tags and ids stand as they were. They are looked at before the core is given them: a broker
// checks what it feeds the core, and a file may have been changed since.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/core/core.hpp"
#include "schemas/journal_generated.h"

namespace dibs::ctl {

// Inside an open turn. Throws JournalError if a broker could not have given it.
void give(core::Core& core, const journal::Given& given);

}  // namespace dibs::ctl
