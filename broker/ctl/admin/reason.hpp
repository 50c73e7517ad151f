// broker/ctl/admin/reason.hpp -- names a claim's reason to wait: a word for programs, a sentence.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/match/explanation.hpp"
#include "schemas/admin_generated.h"

namespace dibs::ctl {

// Of the holder's tree.
struct LeftProcess {
    uint32_t pid;
    std::string text;
};

// What the broker tells, and what is looked up here.
struct Explained : admin::ExplanationT {
    std::string holder_command = {};  // empty: not known
    std::vector<LeftProcess> left = {};
};

std::string_view wait_word(core::WaitReason reason);
std::string_view class_word(core::ClassReason reason);
std::string_view preempt_word(core::PreemptReason reason);
std::string class_name(uint8_t at_class);  // P0 … P4, free
// What it waits for, which claim has that, and what would have to happen.
std::string wait_sentence(const Explained& told);

}  // namespace dibs::ctl
