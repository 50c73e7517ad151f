// demo/judgement.hpp -- judges from a run's evidence which facts hold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "demo/facts.hpp"
#include "demo/player.hpp"
#include "demo/sampler.hpp"
#include "demo/troupe.hpp"
#include "dibs/dibs.h"

namespace dibs::ctl::demo {

struct Evidence {
    size_t valid_rows = 0;
    PlayResult result;
    std::optional<dibs_totals> totals;
    Sampler sampler{0};
    uint64_t witness_faults = 0;
    uint64_t witness_uses = 0;
    size_t witness_in_use = 0;
    Departure departure;
};

Facts judge(const Evidence& evidence);

}  // namespace dibs::ctl::demo
