// tests/fuzz/plain_socket.hpp -- a broker's end of a session for a library that is linked with it:
// one packet, and numbers for segments and bells, without the kernel, which would take nine tenths
// of an execution to send, map and close them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dibs::fuzz {

// What the library hears when it has connected, with as many of the segments and bells as there
// are in a welcome, or fewer; behind it, and whenever it connects again, the peer has hung up.
struct Said {
    std::span<const uint8_t> packet;
    size_t descriptors = 0;
    bool cut = false;                  // there were more, and no place for them
    std::span<std::byte> segments[3];  // UP, DOWN, BOARD
};
void say(const Said& said);

// That nothing is open or mapped that the library was given.
void expect_all_given_back();

}  // namespace dibs::fuzz
