// broker/core/gang/parameters.cpp -- reads the parameters of a gang's scheduling (S4.14).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "broker/core/gang/parameters.hpp"
#include "broker/core/store/state.hpp"

namespace dibs::core {

namespace {

// Seconds as a time-out; what is no number, or negative, is 0.
TimeNs timeout_of(std::string_view text) {
    constexpr uint64_t kSecond = 1'000'000'000;
    uint64_t seconds = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return 0;
    return std::min(seconds, (shm::kNever - 1) / kSecond) * kSecond;
}

}  // namespace

GangParameters gang_parameters(std::string_view text) {
    GangParameters found;
    while (!text.empty()) {
        const size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const size_t sign = word.find('=');
        if (sign == std::string_view::npos || word.find('=', sign + 1) != std::string_view::npos) {
            continue;
        }
        const std::string_view key = word.substr(0, sign);
        const std::string_view value = word.substr(sign + 1);
        if (key == "placeholderTimeoutInSeconds") {
            found.has_timeout = true;
            found.timeout_ns = timeout_of(value);
        } else if (key == "gangSchedulingStyle") {
            found.has_style = true;
            found.style = value == "Hard" ? shm::GangStyle::kHard : shm::GangStyle::kSoft;
        }
    }
    return found;
}

}  // namespace dibs::core
