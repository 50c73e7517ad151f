// broker/ctl/amounts.hpp -- checks typed amounts of resources, "memory=10GiB", and says what is
// wrong where.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace dibs::ctl {

// Failure (usage): too many, one that is not NAME=AMOUNT, or a name twice.
void check_amounts(const std::string& option, const std::vector<std::string>& amounts);
// The same of --want and --up-to together, which are something, and no more at least than at most.
void check_part(const std::vector<std::string>& least, const std::vector<std::string>& most);
// Why they are no part of a slot with these resources: a sentence without its end. Empty: they are.
std::string no_part(const std::vector<std::string>& resources,
                    const std::vector<std::string>& least,
                    const std::vector<std::string>& most);
// What --up-to does not name is as --want says.
std::vector<std::string> full_most(const std::vector<std::string>& least,
                                   const std::vector<std::string>& most);

}  // namespace dibs::ctl
