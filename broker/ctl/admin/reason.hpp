// broker/ctl/admin/reason.hpp -- why a claim waits: a word for programs, a sentence for people.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "broker/core/explanation.hpp"
#include "schemas/admin_generated.h"

namespace dibs::ctl {

std::string_view wait_word(core::WaitReason reason);
std::string_view class_word(core::ClassReason reason);
std::string_view preempt_word(core::PreemptReason reason);
std::string class_name(uint8_t at_class);  // P0 … P4, free
// What it waits for, who has that, and what would have to happen.
std::string wait_sentence(const admin::ExplanationT& told);

}  // namespace dibs::ctl
