// broker/ctl/worker/template_text.hpp -- "{index}" in a text stands for the process's number, from
// 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dibs::ctl::worker {

inline std::string filled_in(std::string text, uint32_t index) {
    constexpr std::string_view kMark = "{index}";
    const std::string number = std::to_string(index);
    for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at))
        text.replace(at, kMark.size(), number);
    return text;
}

}  // namespace dibs::ctl::worker
