// broker/ctl/admin/row_order.hpp -- selects and sorts the rows of a sheet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "broker/ctl/output/sheet.hpp"

namespace dibs::ctl {

// By its title or its key, without _ns, in any case. Failure (usage): the columns that there are.
size_t column_named(const Sheet& sheet, const std::string& word);

// Numbers and times: the largest first; texts from A to Z; what is not known last. `reversed`: the
// other way round, but for that.
void sort_rows(Sheet* sheet, size_t column, bool reversed);

// The user's rows alone: of its uid, or on its own account.
void keep_user(Sheet* sheet, uint32_t uid);

}  // namespace dibs::ctl
