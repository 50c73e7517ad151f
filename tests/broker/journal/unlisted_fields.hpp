// tests/broker/journal/unlisted_fields.hpp -- finds decisions that set a field which the list of
// their kind does not name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "broker/core/decision_fields.hpp"

namespace dibs::tests {

// The kind and the place of the first one; empty if all of them do not.
inline std::string unlisted_fields(std::span<const core::Decision> decisions) {
    using core::Decision;
    static constexpr Decision kBlank{.kind = core::DecisionKind::kResult};
    // No field has the bytes in between.
    constexpr size_t kGap = offsetof(Decision, to_class) + sizeof(Decision::to_class);
    constexpr size_t kBehind = offsetof(Decision, holder_claim);
    for (const Decision& decision : decisions) {
        Decision rest = decision;
        rest.kind = kBlank.kind;
        core::each_field(decision.kind, [&](const char*, auto member, core::Form form) {
            rest.*member = kBlank.*member;
            if (form == core::Form::kSlots) rest.slots_count = 0;
        });
        const auto* const bytes = reinterpret_cast<const std::byte*>(&rest);
        const auto* const blank = reinterpret_cast<const std::byte*>(&kBlank);
        for (size_t at = 0; at < sizeof(Decision); ++at) {
            if (bytes[at] == blank[at] || (at >= kGap && at < kBehind)) continue;
            return "kind " + std::to_string(static_cast<int>(decision.kind)) + ", byte " +
                   std::to_string(at);
        }
    }
    return {};
}

}  // namespace dibs::tests
