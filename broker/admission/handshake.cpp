// broker/admission/handshake.cpp -- reads Hello and writes Welcome and Farewell for the broker.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/handshake.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "broker/admission/client_socket.hpp"
#include "shm/memfd.hpp"

namespace dibs {

namespace {

Refusal refuse(shm::FarewellCode code, uint32_t client_layout, std::string text) {
    return {code, client_layout, std::move(text)};
}

std::string sizes_text(const shm::SessionSizes& sizes) {
    return "submission " + std::to_string(sizes.submission_entries) + ", completion " +
           std::to_string(sizes.completion_entries) + ", payload " +
           std::to_string(sizes.up_payload) + " and " + std::to_string(sizes.down_payload) +
           ", tags " + std::to_string(sizes.tags);
}

}  // namespace

std::optional<Refusal> check_hello(std::span<const std::byte> packet,
                                   shm::SessionSizes* sizes,
                                   bool* has_tree) {
    // Magic and version come first in every layout that there will ever be.
    constexpr size_t kVersioned = offsetof(shm::Hello, layout_version) + sizeof(uint32_t);
    std::array<std::byte, sizeof(shm::Hello)> bytes = {};
    std::memcpy(bytes.data(), packet.data(), std::min(packet.size(), bytes.size()));
    const auto hello = std::bit_cast<shm::Hello>(bytes);
    if (packet.size() < kVersioned || hello.magic != shm::kHelloMagic) {
        return refuse(shm::FarewellCode::kMalformed,
                      0,
                      "a Hello was expected; " + std::to_string(packet.size()) +
                          " bytes of something else came");
    }
    if (hello.layout_version != shm::kLayoutVersion) {
        return refuse(shm::FarewellCode::kVersion,
                      hello.layout_version,
                      "the client speaks layout " + std::to_string(hello.layout_version) +
                          ", this broker layout " + std::to_string(shm::kLayoutVersion) +
                          ": one of the two must be brought up to date");
    }
    if (packet.size() != sizeof(hello)) {
        return refuse(shm::FarewellCode::kMalformed,
                      hello.layout_version,
                      "a Hello has " + std::to_string(sizeof(hello)) + " bytes, this one " +
                          std::to_string(packet.size()));
    }
    if ((hello.flags & ~shm::HelloFlag::kTree) != 0 || hello.reserved0 != 0) {
        return refuse(shm::FarewellCode::kMalformed,
                      hello.layout_version,
                      "the Hello sets flags that this layout does not have");
    }
    *has_tree = hello.flags == shm::HelloFlag::kTree;
    *sizes = shm::wanted_sizes(hello);
    if (!shm::valid_sizes(*sizes)) {
        return refuse(shm::FarewellCode::kSizes,
                      hello.layout_version,
                      "sizes out of range, or no powers of two: " + sizes_text(*sizes));
    }
    return std::nullopt;
}

bool is_admin_hello(std::span<const std::byte> packet) {
    uint64_t magic = 0;
    std::memcpy(&magic, packet.data(), std::min(packet.size(), sizeof(magic)));
    return magic == shm::kAdminHelloMagic;
}

std::optional<Refusal> check_admin_hello(std::span<const std::byte> packet) {
    std::array<std::byte, sizeof(shm::AdminHello)> bytes = {};
    std::memcpy(bytes.data(), packet.data(), std::min(packet.size(), bytes.size()));
    const auto hello = std::bit_cast<shm::AdminHello>(bytes);
    if (hello.admin_version != shm::kAdminVersion) {
        const std::string version(hello.version, strnlen(hello.version, sizeof(hello.version)));
        return refuse(shm::FarewellCode::kVersion,
                      hello.layout_version,
                      "dibs " + version + " speaks admin version " +
                          std::to_string(hello.admin_version) +
                          ", dibsd " DIBS_VERSION " version " + std::to_string(shm::kAdminVersion) +
                          ": bring the older one up to date");
    }
    if (packet.size() != sizeof(hello)) {
        return refuse(shm::FarewellCode::kMalformed,
                      hello.layout_version,
                      "an AdminHello has " + std::to_string(sizeof(hello)) + " bytes, this one " +
                          std::to_string(packet.size()));
    }
    return std::nullopt;
}

HelloResult receive_hello(int socket) {
    HelloResult result;
    const Packet next = next_packet(socket);
    if (next == Packet::kNone || next == Packet::kGone) {
        result.first = next == Packet::kNone ? FirstPacket::kNothingYet : FirstPacket::kGone;
        return result;
    }
    result.first = FirstPacket::kRefused;
    if (next == Packet::kDescriptors) {
        result.refusal = refuse(shm::FarewellCode::kMalformed,
                                0,
                                "a client passes no descriptors; these have been dropped");
        return result;
    }
    std::array<std::byte, 256> packet;
    const ssize_t size = recv(socket, packet.data(), packet.size(), MSG_DONTWAIT);
    const std::span<const std::byte> bytes{packet.data(), size < 0 ? 0 : static_cast<size_t>(size)};
    const bool administers = is_admin_hello(bytes);
    if (const auto refusal = administers ? check_admin_hello(bytes)
                                         : check_hello(bytes, &result.sizes, &result.has_tree)) {
        result.refusal = *refusal;
        return result;
    }
    result.first = administers ? FirstPacket::kAdmin : FirstPacket::kHello;
    return result;
}

bool send_welcome(const Session& session, const BoardSegment& board, uint64_t epoch) {
    shm::Welcome welcome;
    welcome.epoch = epoch;
    welcome.session = session.row;
    welcome.generation = session.generation;
    welcome.submission_entries = session.sizes.submission_entries;
    welcome.completion_entries = session.sizes.completion_entries;
    welcome.up_payload = session.sizes.up_payload;
    welcome.down_payload = session.sizes.down_payload;
    welcome.tags = session.sizes.tags;
    welcome.pools_max = board.pools_max();
    welcome.up_size = shm::plan_up(session.sizes).size;
    welcome.down_size = shm::plan_down(session.sizes).size;
    welcome.board_size = board.size();

    // UP too: holders of this descriptor are told apart from holders of the one that the segment
    // was made with.
    const shm::Descriptor up = shm::reopen_for_writing(session.up_fd.get());
    const shm::Descriptor down = shm::reopen_read_only(session.down_fd.get());
    const std::array<int, static_cast<size_t>(shm::WelcomeDescriptor::kCount)> descriptors = {
        up.get(),
        down.get(),
        board.read_only_fd(),
        session.bell.get(),
        session.client_event_socket.get()};
    struct iovec part = {&welcome, sizeof(welcome)};
    alignas(struct cmsghdr) std::array<char, CMSG_SPACE(sizeof(descriptors))> control = {};
    struct msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(descriptors));
    std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(descriptors));
    return sendmsg(session.socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
           static_cast<ssize_t>(sizeof(welcome));
}

void send_farewell(int socket, const Refusal& refusal) {
    shm::Farewell farewell;
    farewell.code = refusal.code;
    farewell.client_layout = refusal.client_layout;
    farewell.text_size =
        static_cast<uint32_t>(std::min(refusal.text.size(), sizeof(farewell.text)));
    std::memcpy(farewell.text, refusal.text.data(), farewell.text_size);
    // A socket that is closed with packets unread resets its peer, which then reads an error in
    // place of our last word. Nothing comes behind the shutdown, so what is left has an end.
    (void)end_reading(socket);
    // A client that has gone, or reads nothing, misses it.
    (void)send(socket, &farewell, sizeof(farewell), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace dibs
