// broker/core/dispatch/entry_change.hpp -- changes the row of an entry together with the sets in
// which it stands. For the files of this folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/core/parts.hpp"

namespace dibs::core {

template <class Change>
void Dispatch::change(uint32_t row, const Change& alter) {
    const shm::EntryRow& entry = state.entries[row];
    const uint32_t group = waits(entry) ? group_of(entry) : kNoRow;
    list(row, false);
    alter(edit().row(entry, 1U | 1U << 2U));
    list(row, true);
    if (group != kNoRow && queued_.size(group) == 0) close_group(group);
    matcher().touch(entry.pool);
}

}  // namespace dibs::core
