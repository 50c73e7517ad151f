// broker/ctl/worker/template_text.hpp -- fills in "{index}" and "{pid}" in texts of `dibs worker`.
// "{index}" stands for the number of a command's process among its like, from 0; in attributes
// "{pid}" stands for its process id.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace dibs::ctl::worker {

inline std::string filled_in(std::string text, std::string_view mark, uint32_t number) {
    const std::string shown = std::to_string(number);
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at))
        text.replace(at, mark.size(), shown);
    return text;
}

inline std::string with_index(std::string text, uint32_t index) {
    return filled_in(std::move(text), "{index}", index);
}

}  // namespace dibs::ctl::worker
