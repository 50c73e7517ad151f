// broker/core/decision_sum.cpp -- adds up the fields of a decision, one after the other.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/decision_sum.hpp"

#include <string_view>
#include <type_traits>
#include <vector>

#include "broker/core/decision_fields.hpp"
#include "broker/core/store/index.hpp"

namespace dibs::core {

uint32_t sum_of(const Core& core, const Decision& decision) {
    std::vector<uint64_t> numbers = {static_cast<uint64_t>(decision.kind)};
    each_field(decision.kind, [&](const char*, auto member, Form form) {
        if (form == Form::kSlots) {
            for (const DecidedSlot& slot : core.decided_slots(decision))
                numbers.push_back(slot.row);
        } else if (form == Form::kCost || form == Form::kResources) {
            for (const int64_t amount : core.decided_amounts(decision))
                numbers.push_back(static_cast<uint64_t>(amount));
        } else if constexpr (requires { static_cast<uint64_t>(decision.*member); }) {
            numbers.push_back(static_cast<uint64_t>(decision.*member));
        } else if constexpr (std::is_same_v<decltype(member), std::string_view Decision::*>) {
            numbers.push_back(text_hash(decision.*member, 0));
        } else {  // its bytes are a command's, and may be gone by now
            numbers.push_back((decision.*member).size());
        }
    });
    const uint64_t sum = hash_bytes(numbers.data(), numbers.size() * sizeof(uint64_t), 0);
    return static_cast<uint32_t>(sum ^ (sum >> 32U));
}

}  // namespace dibs::core
