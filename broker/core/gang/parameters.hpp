// broker/core/gang/parameters.hpp -- says what a gang is to be, as given.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "broker/core/settings.hpp"
#include "shm/layout.hpp"

namespace dibs::core {

// What S4.14 lets a text say.
struct GangParameters {
    bool has_timeout = false;
    TimeNs timeout_ns = 0;
    bool has_style = false;
    shm::GangStyle style = shm::GangStyle::kSoft;
};
[[nodiscard]] GangParameters gang_parameters(std::string_view text);

// Of one group.
struct Members {
    uint32_t number = 0;
    std::array<uint64_t, shm::kResourcesMax> each{};  // nothing: a whole slot
};

}  // namespace dibs::core
