// broker/ctl/admin/account_sheet.hpp -- shows configured and actual shares of accounts in columns.
//
// Both are shares of all accounts together, in millionths: of the rates, and of the time for which
// their slots were held since each was made. Two looks at used_ns give the share of the time
// between.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "broker/ctl/output/sheet.hpp"
#include "schemas/admin_generated.h"

namespace dibs::ctl {

using Accounts = std::vector<std::unique_ptr<admin::AccountT>>;

// Rows for those that are told; shares are of all.
Sheet account_sheet(const Accounts& all, const std::vector<const admin::AccountT*>& told);

}  // namespace dibs::ctl
