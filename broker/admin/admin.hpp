// broker/admin/admin.hpp -- carries one admin request from the control thread through the turn.
//
// The control thread reads and verifies the packet, the turn fills in the answer, the control
// thread packs and sends it: so the turn does row work only, a bounded amount each time, and never
// waits for the asking client.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "broker/admission/peer.hpp"
#include "schemas/admin_generated.h"

namespace dibs {

struct AdminJob {
    uint64_t conversation = 0;  // whose; it may have ended when the answer comes
    uint32_t uid = 0;           // of the asking client
    bool is_admin = false;
    Credentials peer;  // the asking client
    admin::RequestT request;
    admin::AnswerT answer;
    bool made_pool = false;       // to be published before any other client is read
    bool stops = false;           // the broker ends with this turn; its answer is that end
    bool pulls = false;           // its answer waits until the turn has decided
    uint64_t pull = 0;            // which one it is of those that the turn has been asked for
    bool waits = false;           // for offers or orders: its answer waits until there are others
    uint64_t waits_until_ns = 0;  // broker time
    uint64_t seen_stamp = 0;      // of the offers that it has looked at
    // Its conversation has ended, and nobody waits. By std::atomic_ref; writer: the control thread;
    // pairs with nothing.
    bool is_abandoned = false;
};

}  // namespace dibs
