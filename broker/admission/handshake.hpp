// broker/admission/handshake.hpp -- reads Hello and writes Welcome and Farewell for the broker.
//
// A Hello is one packet of exactly its size, without descriptors: the broker offers no room for
// any, so the kernel drops those that are sent and says so, and the session is refused. No call
// here waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "broker/segments/segments.hpp"
#include "broker/session/session.hpp"
#include "shm/handshake.hpp"

namespace dibs {

struct Refusal {
    shm::FarewellCode code;
    uint32_t client_layout = 0;
    std::string text;
};

enum class FirstPacket { kHello, kAdmin, kNothingYet, kGone, kRefused };

struct HelloResult {
    FirstPacket first = FirstPacket::kNothingYet;
    shm::SessionSizes sizes;
    bool has_tree = false;
    Refusal refusal;
};

// Receives what has come on a connection that has not said Hello yet.
HelloResult receive_hello(int socket);

// What is wrong with a packet that should be a Hello; nothing if it is good.
std::optional<Refusal> check_hello(std::span<const std::byte> packet,
                                   shm::SessionSizes* sizes,
                                   bool* has_tree);
// The same of one that begins as an AdminHello.
bool is_admin_hello(std::span<const std::byte> packet);
std::optional<Refusal> check_admin_hello(std::span<const std::byte> packet);

// False if the client is not there any more.
bool send_welcome(const Session& session, const BoardSegment& board, uint64_t epoch);
// The last word: nothing more is taken from the client, and it reads this even if it has spoken
// since. The caller closes the socket.
void send_farewell(int socket, const Refusal& refusal);

}  // namespace dibs
