// broker/text/log_throttle.cpp -- gives each user and place a bucket of lines.
// SPDX-License-Identifier: Apache-2.0
#include "broker/text/log_throttle.hpp"

#include <algorithm>
#include <utility>

namespace dibs {

LogThrottle::Source& LogThrottle::source(uint32_t uid, std::string_view place, uint64_t now_ns) {
    Name name(uid, place);
    const auto known = sources_.find(name);
    if (known != sources_.end()) return known->second;
    if (sources_.size() >= kSourcesMax) {
        std::erase_if(sources_, [&](const auto& one) {
            return one.second.free_ns <= now_ns && one.second.left_out == 0;
        });
    }
    if (sources_.size() >= kSourcesMax) return others_;
    return sources_[std::move(name)];
}

std::optional<uint64_t> LogThrottle::admit(uint32_t uid, std::string_view place, uint64_t now_ns) {
    Source& from = source(uid, place, now_ns);
    const uint64_t next_ns = std::max(from.free_ns, now_ns) + kLineEveryNs;
    if (next_ns - now_ns > kLinesAtOnce * kLineEveryNs) {
        ++from.left_out;
        return std::nullopt;
    }
    from.free_ns = next_ns;
    return std::exchange(from.left_out, 0);
}

}  // namespace dibs
