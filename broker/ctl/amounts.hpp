// broker/ctl/amounts.hpp -- checks typed amounts of resources, "memory=10GiB", and says what is
// wrong where.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace dibs::ctl {

// Failure (usage): too many, or one that is not NAME=AMOUNT.
void check_amounts(const std::string& option, const std::vector<std::string>& amounts);
// The same of --want and --up-to together.
void check_part(const std::vector<std::string>& least, const std::vector<std::string>& most);
// What --up-to does not name is as --want says.
std::vector<std::string> full_most(const std::vector<std::string>& least,
                                   const std::vector<std::string>& most);

}  // namespace dibs::ctl
