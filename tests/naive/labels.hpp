// tests/naive/labels.hpp -- "Labels" of docs/scheduling.md: what is one, and lists as sets.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "tests/naive/model.hpp"

namespace dibs::naive {

// "A label is 1 to 63 bytes without a zero byte; at most 32 before that."
inline bool labels_are_sound(std::span<const std::string_view> labels) {
    return labels.size() <= shm::kLabelsMax &&
           std::all_of(labels.begin(), labels.end(), [](std::string_view label) {
               return !label.empty() && label.size() <= shm::kNameMax &&
                      label.find('\0') == std::string_view::npos;
           });
}

inline Labels label_set(std::span<const std::string_view> labels) {
    return {labels.begin(), labels.end()};
}

inline bool has_all(const Labels& labels, const Labels& wanted) {
    return std::includes(labels.begin(), labels.end(), wanted.begin(), wanted.end());
}

}  // namespace dibs::naive
