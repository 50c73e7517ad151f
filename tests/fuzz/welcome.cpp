// tests/fuzz/welcome.cpp -- what a client hears in answer to its Hello, and the segments that it is
// sent: a session, or a code and a sentence.
//
// The library connects to a socket that is already full: the linker gives this file its calls of
// socket() and connect(). The first byte says what is sent: the input as it is, or a true Welcome
// with the input over a part of it or over the segments' heads.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "dibs/dibs.h"
#include "shm/board.hpp"
#include "shm/handshake.hpp"
#include "shm/memfd.hpp"
#include "tests/fuzz/bytes.hpp"

namespace {

using namespace dibs;  // NOLINT
using fuzz::expect;

constexpr shm::SessionSizes kSizes = {8, 16, 4096, 4096, 8};
constexpr uint32_t kPools = 2;

int next_socket = -1;

// The segments of a session that never changes; each input writes over their first bytes.
struct Segments {
    std::array<int, 5> fds;
    std::byte* up;
    std::byte* down;
    std::byte* board;

    Segments() {
        up = make(0, shm::plan_up(kSizes).size);
        down = make(1, shm::plan_down(kSizes).size);
        board = make(2, shm::plan_board(kPools).size);
        fds[3] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        fds[4] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    std::byte* make(size_t which, uint64_t size) {
        shm::Descriptor memory = shm::make_memfd("segment", size);
        fds[which] = memory.release();
        void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[which], 0);
        expect(at != MAP_FAILED, "memory for a segment");
        return static_cast<std::byte*>(at);
    }
    void reset() const {
        std::memset(up, 0, shm::plan_up(kSizes).size);
        std::memset(down, 0, shm::plan_down(kSizes).size);
        std::memset(board, 0, shm::plan_board(kPools).size);
        shm::write_up_head(*reinterpret_cast<shm::UpHead*>(up), kSizes, 1, 1);
        shm::write_down_head(*reinterpret_cast<shm::DownHead*>(down), kSizes, 1, 1, 1);
        auto* head = reinterpret_cast<shm::BoardHead*>(board);
        head->magic = shm::kBoardMagic;
        head->pools_max = kPools;
        head->pools.store(kPools);
        head->version.store(shm::kLayoutVersion);
    }
};

shm::Welcome good_welcome() {
    shm::Welcome welcome;
    welcome.epoch = 1;
    welcome.session = 1;
    welcome.generation = 1;
    welcome.submission_entries = kSizes.submission_entries;
    welcome.completion_entries = kSizes.completion_entries;
    welcome.up_payload = kSizes.up_payload;
    welcome.down_payload = kSizes.down_payload;
    welcome.tags = kSizes.tags;
    welcome.pools_max = kPools;
    welcome.up_size = shm::plan_up(kSizes).size;
    welcome.down_size = shm::plan_down(kSizes).size;
    welcome.board_size = shm::plan_board(kPools).size;
    return welcome;
}

void send_packet(int socket, std::span<const uint8_t> packet, std::span<const int> fds) {
    struct iovec part = {const_cast<uint8_t*>(packet.data()), packet.size()};
    alignas(struct cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 5)> control = {};
    struct msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(fds.size_bytes());
        struct cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    }
    (void)sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// What a caller does with a session, whatever stands in its segments.
void use(dibs_session* session) {
    uint32_t pool = 0;
    (void)dibs_pool(session, "gpu", &pool);
    dibs_counters counters = {};
    counters.size = sizeof counters;
    (void)dibs_snapshot(session, 0, &counters);
    dibs_pool_limits limits = {};
    limits.size = sizeof limits;
    (void)dibs_describe(session, 1, &limits);
    dibs_claim_options options = {};
    options.size = sizeof options;
    dibs_op op = {};
    op.size = sizeof op;
    op.kind = DIBS_OP_CLAIM;
    op.claim = &options;
    (void)dibs_submit(session, &op, 1);
    dibs_completion ends[4];
    const int reaped = dibs_reap(session, ends, 4, 0);
    for (int i = 0; i < reaped; ++i) {
        if (ends[i].outcome != DIBS_GRANTED) continue;
        dibs_slot slot = {};
        if (dibs_lease_slot(session, &ends[i].lease, 0, &slot) == DIBS_OK) {
            size_t sum = 0;
            for (size_t at = 0; at < slot.attributes_size; ++at)
                sum += static_cast<uint8_t>(slot.attributes[at]);
            const auto* answer = static_cast<const uint8_t*>(slot.answer);
            for (size_t at = 0; at < slot.answer_size; ++at)
                sum += answer[at];
            expect(sum < size_t{1} << 32U, "bytes are bytes");
        }
        (void)dibs_release(session, &ends[i].lease, DIBS_NOWAIT);
    }
    dibs_assignment assignment;
    (void)dibs_next_assignment(session, 0, &assignment);
    (void)dibs_dispatch(session);
}

}  // namespace

extern "C" {
int __wrap_socket(int, int, int) {
    return next_socket;
}
int __wrap_connect(int, const struct sockaddr*, socklen_t) {
    return 0;
}
}

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    static const Segments segments;
    segments.reset();
    fuzz::Bytes input(bytes, size);
    const auto what = input.take<uint8_t>();
    int pair[2];
    expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "a pair of sockets");
    next_socket = pair[0];
    shm::Welcome welcome = good_welcome();
    std::span<const uint8_t> packet(reinterpret_cast<const uint8_t*>(&welcome), sizeof welcome);
    if (what % 4 == 0) {
        packet = input.rest().first(std::min<size_t>(input.rest().size(), 1024));
    } else if (what % 4 == 1) {
        const auto at = input.take<uint8_t>() % sizeof welcome;
        const auto raw = input.take(sizeof welcome - at);
        std::memcpy(reinterpret_cast<uint8_t*>(&welcome) + at, raw.data(), raw.size());
    } else {
        std::byte* segment = what % 4 == 2 ? segments.down : segments.board;
        const uint64_t room =
            what % 4 == 2 ? shm::plan_down(kSizes).size : shm::plan_board(kPools).size;
        while (!input.empty()) {
            const auto at = input.take<uint16_t>() % room;
            const auto raw = input.take(input.take<uint8_t>());
            std::memcpy(segment + at, raw.data(), std::min<uint64_t>(raw.size(), room - at));
        }
    }
    send_packet(pair[1], packet, std::span(segments.fds).first((what >> 2U) % 8 == 7 ? 3 : 5));
    shutdown(pair[1], SHUT_WR);
    dibs_session* session = nullptr;
    char text[256];
    dibs_connect_options options = {};
    options.size = sizeof options;
    options.socket_path = "anywhere";
    options.submission_entries = kSizes.submission_entries;
    options.completion_entries = kSizes.completion_entries;
    options.up_payload = kSizes.up_payload;
    options.down_payload = kSizes.down_payload;
    options.leases_max = kSizes.tags;
    options.spin_us = -1;
    options.error_text = text;
    options.error_text_size = sizeof text;
    const int code = dibs_connect(&options, &session);
    expect((code == DIBS_OK) == (session != nullptr), "a session, or a code");
    if (session != nullptr) {
        ++fuzz::understood;
        use(session);
        (void)dibs_close(session);
    }
    close(pair[1]);
    return 0;
}
