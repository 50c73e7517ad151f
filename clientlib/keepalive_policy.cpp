// clientlib/keepalive_policy.cpp -- says when a holder calls next, and when there is no use in it.
//
// What is left of the lease is the only budget: not a number of tries. A call that is begun must be
// able to end before the lease does, however slow it is, so the last one begins call_ns before the
// expiry, and a wait that would miss that is cut.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "clientlib/session.hpp"

namespace dibs::client {
namespace {

constexpr size_t kFirstPolicy = sizeof(dibs_keepalive_policy);

int64_t or_default(int64_t given, int64_t otherwise) {
    return given == 0 ? otherwise : given;
}

int64_t least_of(int64_t one, int64_t other) {
    return one < other ? one : other;
}

bool may_pass(int code) {
    return code == DIBS_ETIMEDOUT || code == DIBS_EFULL || code == DIBS_EUNREAD;
}

// Between four fifths of it and all of it.
int64_t jittered(int64_t wait_ns, uint64_t random) {
    const auto fifth = static_cast<uint64_t>(wait_ns / 5);
    const auto part = static_cast<uint64_t>(static_cast<unsigned __int128>(fifth) * random >> 64U);
    return wait_ns - static_cast<int64_t>(fifth - part);
}

int64_t retry_wait(const dibs_keepalive_policy& policy, uint32_t failures) {
    const int64_t most = or_default(policy.retry_most_ns, 30 * DIBS_SECOND);
    int64_t wait = least_of(or_default(policy.retry_ns, 2 * DIBS_SECOND), most);
    for (uint32_t i = 1; i < failures && wait < most; ++i)
        wait = wait / 2 < most - wait ? wait + wait / 2 : most;
    return wait;
}

}  // namespace
}  // namespace dibs::client

using namespace dibs::client;

int dibs_keepalive_next(
    dibs_keepalive_policy* policy, int code, int64_t left_ns, uint64_t random, int64_t* wait_ns) {
    if (policy == nullptr || wait_ns == nullptr) return DIBS_EARGUMENT;
    *wait_ns = 0;
    if (policy->size < kFirstPolicy) return DIBS_ESIZE;
    const dibs_keepalive_policy& given = *policy;
    const int64_t durations[] = {left_ns,
                                 given.margin_ns,
                                 given.wait_most_ns,
                                 given.call_ns,
                                 given.retry_ns,
                                 given.retry_most_ns,
                                 given.pause_ns};
    for (const int64_t duration : durations)
        if (duration < 0) return DIBS_ENEGATIVE;
    const int64_t pause = or_default(given.pause_ns, DIBS_SECOND);
    const int64_t call = or_default(given.call_ns, 10 * DIBS_SECOND);
    int64_t wait = 0;
    if (code == DIBS_OK) {
        policy->failures = 0;
        wait = left_ns - least_of(left_ns, or_default(given.margin_ns, 30 * DIBS_SECOND));
        wait = least_of(wait, or_default(given.wait_most_ns, 300 * DIBS_SECOND));
    } else if (may_pass(code)) {
        if (left_ns < call || left_ns - call < pause) return DIBS_KEEPALIVE_LOST;
        if (policy->failures != UINT32_MAX) ++policy->failures;
        wait = least_of(jittered(retry_wait(given, given.failures), random), left_ns - call);
    } else {
        return DIBS_KEEPALIVE_END;
    }
    *wait_ns = wait < pause ? pause : wait;
    return DIBS_KEEPALIVE_WAIT;
}
