// tests/process/parked.hpp -- what tests of parked leases share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "clientlib/session.hpp"
#include "tests/process/client_attached.hpp"

namespace dibs::test {

inline std::string parking_pool(const std::string& name,
                                uint32_t slots,
                                const std::string& quantum) {
    return "[[pool]]\nname = \"" + name +
           "\"\nkind = \"counted\"\nslots = " + std::to_string(slots) + "\nquantum = \"" + quantum +
           "\"\n";
}

// A plain claim: takes what is parked, or asks the broker.
inline dibs_lease take(const Attached& client) {
    dibs_completion end = {};
    EXPECT_EQ(dibs_claim(client, client.pool(), nullptr, &end), DIBS_OK);
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
    return end.lease;
}

inline void put(const Attached& client, const dibs_lease& lease) {
    EXPECT_EQ(dibs_release(client, &lease, DIBS_NOWAIT), DIBS_OK);
}

inline uint32_t number_of(const Attached& client, const dibs_lease& lease) {
    dibs_slot slot = {};
    EXPECT_EQ(dibs_lease_slot(client, &lease, 0, &slot), DIBS_OK);
    return slot.number;
}

inline uint64_t word_of(const Attached& client, const dibs_lease& lease) {
    const dibs_session* session = client;
    return session->lease_words[lease.tag].word.load(std::memory_order_acquire);
}

// Until the broker has asked for it back.
inline void await_wanted(const Attached& client, const dibs_lease& lease) {
    while ((word_of(client, lease) & shm::LeaseWordBit::kWanted) == 0)
        sched_yield();
}

inline dibs_completion reap_one(const Attached& client) {
    dibs_completion end = {};
    EXPECT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    return end;
}

}  // namespace dibs::test
