// tests/naive/elastic_wording.cpp -- the one-line texts of what only elastic pools look at.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "tests/naive/wording.hpp"

namespace dibs::naive {

namespace {

const char* answer_word(core::Provisioned::Answer answer) {
    using Answer = core::Provisioned::Answer;
    switch (answer) {
        case Answer::kCreated:
            return "created";
        case Answer::kStopped:
            return "stopped";
        case Answer::kQuota:
            return "quota";
        case Answer::kCapacity:
            return "capacity";
        case Answer::kOverload:
            return "overload";
        case Answer::kFailed:
            return "failed";
    }
    return "?";
}

const char* scope_word(core::Provisioned::Scope scope) {
    using Scope = core::Provisioned::Scope;
    switch (scope) {
        case Scope::kEverything:
            return "everything";
        case Scope::kQuotaGroup:
            return "quota-group";
        case Scope::kType:
            return "of-type";
    }
    return "?";
}

// " name=value", but nothing for a value that says nothing.
std::string given(const char* name, uint64_t value, uint64_t nothing) {
    return value == nothing ? "" : std::string(" ") + name + "=" + std::to_string(value);
}

}  // namespace

std::string words_of_elastic(const core::PoolConfig& config) {
    std::string words = "workers_max=" + std::to_string(config.workers_max);
    words += given("workers_min", config.workers_min, 0) + given("spare", config.spare, 0);
    words += given("quota_estimate", config.quota_estimate, 0);
    words += given("price_factor", config.price_factor_permille, 0);
    words += given("creates_max", config.creates_max, 1);
    words += given("create_throttle", config.create_throttle_ns, shm::kNever);
    words += given("quiet", config.quiet_ns, shm::kNever);
    words += given("quota_error", config.quota_error_ns, shm::kNever);
    words += given("capacity_error", config.capacity_error_ns, shm::kNever);
    words += given("idle_timeout", config.idle_timeout_ns, shm::kNever);
    words += given("gather", config.gather_ns, 50'000'000);
    return words + given("boot_timeout", config.boot_timeout_ns, shm::kNever);
}

std::string provision_words(const Step& step) {
    switch (step.kind) {
        case StepKind::kSetType: {
            std::string words = step.name + given("cost", step.type.cost, 1);
            if (step.type.preemptible) words += " preemptible";
            if (!step.type.provider_type.empty()) words += " provider:" + step.type.provider_type;
            if (!step.type.quota_group.empty()) words += " group:" + step.type.quota_group;
            for (const std::string& label : step.labels)
                words += " label:" + label;
            return words;
        }
        case StepKind::kProvide:
            return step.name + (step.on ? " on" : " off");
        case StepKind::kProvisioned: {
            std::string words = answer_word(step.answer);
            if (step.answer != core::Provisioned::Answer::kCapacity) return words;
            words += std::string(" of:") + scope_word(step.scope);
            return step.name.empty() ? words : words + " group:" + step.name;
        }
        default:
            return step.name;
    }
}

}  // namespace dibs::naive
