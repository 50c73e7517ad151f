// broker/admission/descriptors.cpp -- sizes the descriptor table.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/descriptors.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <system_error>

namespace dibs {

namespace {

constexpr uint64_t kOwn = 48 + 128;  // of the broker itself, and of admin conversations
// One of them until its Welcome is sent, or for its tree. A session with a tree has eight until
// then: few do at a time, and what is the broker's own has room for them. The Welcome carries five,
// and until it is read the kernel counts them against the user, who may have as many in flight as
// one process may have open.
constexpr uint64_t kPerSession = 7;
constexpr uint64_t kCallersMax = 512;
constexpr uint64_t kLeast = 64;  // twice of what keeper, broker and one client have been seen with

}  // namespace

void raise_descriptor_limit() {
    struct rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

void expect_descriptors_for_one() {
    struct rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kLeast) return;
    throw std::system_error(EMFILE,
                            std::generic_category(),
                            "a broker needs " + std::to_string(kLeast) + " descriptors at least");
}

DescriptorBudget descriptor_budget(uint64_t limit) {
    DescriptorBudget budget;
    budget.descriptors = limit;
    budget.callers = std::clamp<uint64_t>(limit / 8, 8, kCallersMax);
    const uint64_t taken = kOwn + budget.callers;
    const uint64_t sessions = limit > taken ? (limit - taken) / kPerSession : 0;
    budget.sessions = static_cast<uint32_t>(
        std::clamp<uint64_t>(sessions, 1, std::numeric_limits<uint32_t>::max()));
    return budget;
}

DescriptorBudget descriptor_budget() {
    struct rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return descriptor_budget(1024);
    return descriptor_budget(limit.rlim_cur);
}

}  // namespace dibs
