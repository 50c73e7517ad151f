// broker/journal/decoder.hpp -- applies a recording's commands to another core.
//
// Rows, tags and ids stand as they were. They are checked before the core sees them: a broker
// checks what it feeds the core, and the file may have been changed since. The journal's reader has
// checked the values of enums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/core/core.hpp"
#include "schemas/journal_generated.h"

namespace dibs::ctl {

// All inside an open turn; they throw JournalError if a broker could not have given it. Pools and
// accounts have the same tables in scenarios.
void give(core::Core& core, const journal::Given& given);
void give(core::Core& core, const journal::Pool& pool);
void give(core::Core& core, const journal::Account& account);
void give(core::Core& core, const journal::AccountName& deleted);
void give(core::Core& core, const journal::Balance& balance);
void give(core::Core& core, const journal::Type& type);
void give(core::Core& core, const journal::DeletedType& deleted);

}  // namespace dibs::ctl
