// demo/sampler.cpp -- checks each snapshot for conservation of slots.
// SPDX-License-Identifier: Apache-2.0
#include "demo/sampler.hpp"

#include <algorithm>

namespace dibs::ctl::demo {

void Sampler::look(dibs_session* session, uint32_t pool) {
    dibs_counters counters{};
    counters.size = sizeof counters;
    if (dibs_snapshot(session, pool, &counters) != 0) {
        ++unread_;
        return;
    }
    weigh(counters);
}

void Sampler::weigh(const dibs_counters& counters) {
    ++samples_;
    last_ = counters;
    most_queued_ = std::max(most_queued_, counters.queued);
    const uint64_t sum = uint64_t{counters.idle} + counters.reserved + counters.leased +
                         counters.recovering + counters.unknown;
    if (sum == counters.slots && counters.slots == slots_) return;
    if (broken_++ > 0) return;
    const auto part = [](const char* name, uint32_t value) {
        return std::string(name) + " " + std::to_string(value);
    };
    first_broken_ = part("idle", counters.idle) + part(", reserved", counters.reserved) +
                    part(", leased", counters.leased) + part(", recovering", counters.recovering) +
                    part(", unknown", counters.unknown) + " of " + std::to_string(counters.slots) +
                    " slots, " + std::to_string(slots_) + " expected";
}

}  // namespace dibs::ctl::demo
