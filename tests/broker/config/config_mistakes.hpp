// tests/broker/config/config_mistakes.hpp -- what is wrong with a configuration, line by line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "broker/config/config.hpp"

namespace dibs {

inline const std::string kPool = "[[pool]]\nname = \"a\"\nkind = \"counted\"\nslots = 2\n";

using Lines = std::vector<std::string>;

inline Lines mistakes(const std::string& text) {
    return parse_config(text, "f").mistakes;
}

}  // namespace dibs
