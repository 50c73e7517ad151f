// clientlib/opening.hpp -- the state of a session that is being opened: requested and received.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/un.h>

#include <cstdint>

#include "dibs/dibs.h"
#include "shm/handshake.hpp"

namespace dibs::client {

inline constexpr uint32_t kDescriptors = static_cast<uint32_t>(shm::WelcomeDescriptor::kCount);

struct Opening {
    const dibs_connect_options& options;
    uint64_t until_ns = 0;  // monotonic
    int socket = -1;
    bool hung_up = false;  // by the broker, which may have died: its successor answers
    int descriptors[kDescriptors] = {-1, -1, -1, -1, -1};
    int reserved[kDescriptors + 1] = {-1, -1, -1, -1, -1, -1};
    bool welcomed = false;  // the broker has opened a session
    shm::Welcome welcome = {};
    sockaddr_un address = {};

    [[nodiscard]] int descriptor(shm::WelcomeDescriptor which) const {
        return descriptors[static_cast<uint32_t>(which)];
    }
    // The sentence begins with the socket's path, where there is one.
    int fail(int code, const char* what) const;
};

// handshake.cpp. Connects, sends Hello and receives the Welcome, with its descriptors.
int shake_hands(Opening& opening);
// Of one that is not to become a session after all: closes all it has, and the broker's session.
void give_up(Opening& opening);

}  // namespace dibs::client
