// broker/text/spelling.cpp -- finds the known word nearest to a misspelt one.
// SPDX-License-Identifier: Apache-2.0
#include "broker/text/spelling.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace dibs {

namespace {

// How many letters must change to make one word the other.
size_t distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
        }
    }
    return row[b.size()];
}

}  // namespace

std::optional<std::string_view> nearest_word(std::string_view word,
                                             const std::set<std::string_view>& known) {
    std::optional<std::string_view> best;
    size_t least = std::max<size_t>(3, word.size() / 2);
    for (const std::string_view candidate : known) {
        const size_t changes = distance(word, candidate);
        if (changes < least) {
            least = changes;
            best = candidate;
        }
    }
    return best;
}

std::string no_such_option(const std::string& word, const std::set<std::string>& known) {
    const std::string name = word.substr(0, word.find('='));
    const std::string text = "there is no option " + name;
    const auto near = nearest_word(name, {known.begin(), known.end()});
    if (!near || !name.starts_with("--")) return text;
    return text + "; did you mean " + std::string(*near) + "?";
}

}  // namespace dibs
