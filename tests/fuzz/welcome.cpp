// tests/fuzz/welcome.cpp -- what a client hears in answer to its Hello, and the segments that it is
// sent: a session, or a code and a sentence.
//
// The first byte says what is sent: the input as it is, or a true Welcome with the input over a
// part of it or over the segments' heads. The library hears it without the kernel
// (plain_socket.hpp).
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>

#include "dibs/dibs.h"
#include "shm/board.hpp"
#include "shm/handshake.hpp"
#include "shm/lines.hpp"
#include "tests/fuzz/bytes.hpp"
#include "tests/fuzz/plain_socket.hpp"

namespace {

using namespace dibs;  // NOLINT
using fuzz::expect;

constexpr shm::SessionSizes kSizes = {8, 16, 4096, 4096, 8};
constexpr uint32_t kPools = 2;

// The segments of a session that never changes; each input writes over their first bytes.
struct Segments {
    shm::Lines up{shm::plan_up(kSizes).size};
    shm::Lines down{shm::plan_down(kSizes).size};
    shm::Lines board{shm::plan_board(kPools).size};

    void reset() {
        up.clear();
        down.clear();
        board.clear();
        shm::write_up_head(*reinterpret_cast<shm::UpHead*>(up.bytes().data()), kSizes, 1, 1);
        shm::write_down_head(
            *reinterpret_cast<shm::DownHead*>(down.bytes().data()), kSizes, 1, 1, 1);
        auto* head = reinterpret_cast<shm::BoardHead*>(board.bytes().data());
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

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    static Segments segments;
    segments.reset();
    fuzz::Bytes input(bytes, size);
    const auto what = input.take<uint8_t>();
    shm::Welcome welcome = good_welcome();
    std::span<const uint8_t> packet(reinterpret_cast<const uint8_t*>(&welcome), sizeof welcome);
    if (what % 4 == 0) {
        packet = input.rest().first(std::min<size_t>(input.rest().size(), 1024));
    } else if (what % 4 == 1) {
        const auto at = input.take<uint8_t>() % sizeof welcome;
        const auto raw = input.take(sizeof welcome - at);
        std::memcpy(reinterpret_cast<uint8_t*>(&welcome) + at, raw.data(), raw.size());
    } else {
        const std::span<std::byte> segment =
            what % 4 == 2 ? segments.down.bytes() : segments.board.bytes();
        while (!input.empty()) {
            const auto at = input.take<uint16_t>() % segment.size();
            const auto raw = input.take(input.take<uint8_t>());
            std::memcpy(segment.data() + at, raw.data(), std::min(raw.size(), segment.size() - at));
        }
    }
    fuzz::say({.packet = packet,
               .descriptors = (what >> 2U) % 8 == 7 ? 3U : 5U,
               .segments = {segments.up.bytes(), segments.down.bytes(), segments.board.bytes()}});
    static shm::Lines told_down;
    static shm::Lines told_board;
    told_down = segments.down;
    told_board = segments.board;
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
    fuzz::expect_all_given_back();
    const auto same = [](const shm::Lines& now, const shm::Lines& told) {
        return std::memcmp(now.bytes().data(), told.bytes().data(), told.bytes().size()) == 0;
    };
    expect(same(segments.down, told_down) && same(segments.board, told_board),
           "nothing is written to what a client may only read");
    return 0;
}
