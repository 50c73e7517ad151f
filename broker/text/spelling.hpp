// broker/text/spelling.hpp -- finds the known word nearest to a misspelt one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace dibs {

// The word in `known` that is nearest to `word`, if fewer than half of the letters differ.
std::optional<std::string_view> nearest_word(std::string_view word,
                                             const std::set<std::string_view>& known);

// "there is no option --soket; did you mean --socket?": `known` with their dashes.
std::string no_such_option(const std::string& word, const std::set<std::string>& known);

}  // namespace dibs
