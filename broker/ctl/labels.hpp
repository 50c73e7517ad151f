// broker/ctl/labels.hpp -- checks typed labels and names, and says what is wrong where.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dibs::ctl {

// Failure (usage): too many, or one that is empty or over 63 bytes. `where`: "--label", or the word
// that they stand in.
void check_labels(const std::string& where, const std::vector<std::string>& labels);
// The same of one name, which also has no control characters.
void check_name(const std::string& where, const std::string& name);
// Failure (usage): more than libdibs takes.
void check_count(const std::string& where, size_t count, size_t most);

}  // namespace dibs::ctl
