// broker/takeover/inheritance.hpp -- holds what a broker starts with: nothing, or an earlier state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "broker/takeover/keeper_socket.hpp"
#include "shm/descriptor.hpp"

namespace dibs {

struct InheritedSession {
    uint32_t row = 0;
    uint32_t generation = 0;
    std::optional<uint32_t> uid;                        // of the peer behind its socket
    std::array<shm::Descriptor, kKeptMax> descriptors;  // by SessionDescriptor

    [[nodiscard]] shm::Descriptor& at(SessionDescriptor which) {
        return descriptors[static_cast<size_t>(which)];
    }
};

// What is left of a session that has ended.
struct InheritedRemnant {
    uint32_t number = 0;
    uint32_t uid = 0;
    shm::Descriptor up;
    shm::Descriptor down;
    shm::Descriptor process;
};

struct Inheritance {
    shm::Descriptor state;
    shm::Descriptor board;
    shm::Descriptor listener;
    uint64_t listener_inode = 0;  // of its name; 0: not known
    shm::Descriptor config;       // the text that was read last (broker/config/config.hpp)
    shm::Descriptor watch;        // the timer of the hang watch
    std::vector<InheritedSession> sessions;
    std::vector<InheritedRemnant> leftovers;
    uint64_t death_ns = 0;      // monotonic: when the earlier broker died; 0 = there was none
    uint64_t clock_offset = 0;  // of the earlier broker
    uint64_t asked_ns = 0;      // monotonic: when an earlier one was asked to stop; 0 = it was not
    uint64_t epoch = 0;         // at least: that of a STATE that was put aside
    bool put_aside = false;     // brokers died of this STATE: do not look into it
    bool unserved = false;      // no broker has served from this STATE yet
    bool restarted = false;     // both had died, and the service was started anew
    bool replaceable = false;   // another program can go on from here if this one cannot

    [[nodiscard]] bool takeover() const { return death_ns != 0; }
    // A takeover of a STATE that was served from: not in the place of one that was put aside.
    [[nodiscard]] bool goes_on() const { return takeover() && state.valid() && !unserved; }
};

}  // namespace dibs
