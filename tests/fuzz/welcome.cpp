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

// Empty, with the size that tells the library how much of it the caller knows.
template <typename T>
T sized() {
    T made = {};
    made.size = sizeof made;
    return made;
}

// Reads each byte that the library says is there.
void read(const void* bytes, size_t size) {
    size_t sum = 0;
    for (size_t at = 0; at < size; ++at)
        sum += static_cast<const uint8_t*>(bytes)[at];
    expect(sum < size_t{1} << 32U, "bytes are bytes");
}

void look_around(dibs_session* session) {
    uint32_t place = 0;
    (void)dibs_pool(session, "gpu", &place);
    (void)dibs_account(session, "rich", &place);
    auto counters = sized<dibs_counters>();
    (void)dibs_snapshot(session, 0, &counters);
    auto limits = sized<dibs_pool_limits>();
    (void)dibs_describe(session, 1, &limits);
    auto totals = sized<dibs_totals>();
    (void)dibs_pool_totals(session, 0, &totals);
    auto latency = sized<dibs_latency>();
    (void)dibs_pool_latency(session, 1, &latency);
    (void)dibs_reported_latency(session, &latency);
    auto share = sized<dibs_share>();
    (void)dibs_account_share(session, place, &share);
}

void use_lease(dibs_session* session, const dibs_lease& lease) {
    for (uint32_t unit = 0; unit < 2; ++unit) {
        dibs_slot slot = {};
        if (dibs_lease_slot(session, &lease, unit, &slot) == DIBS_OK) {
            read(slot.attributes, slot.attributes_size);
            read(slot.answer, slot.answer_size);
        }
        const char* value = nullptr;
        if (dibs_lease_attribute(session, &lease, unit, "device", &value) == DIBS_OK) {
            read(value, std::strlen(value));
        }
        const void* answer = nullptr;
        size_t size = 0;
        if (dibs_lease_answer(session, &lease, unit, &answer, &size) == DIBS_OK) read(answer, size);
    }
    int code = 0;
    (void)dibs_lease_state(session, &lease, &code);
    int64_t left_ns = 0;
    (void)dibs_lease_remaining(session, &lease, &left_ns);
    (void)dibs_keepalive(session, &lease, DIBS_SECOND, DIBS_NOWAIT, nullptr);
    (void)dibs_release(session, &lease, DIBS_NOWAIT);
}

void work(dibs_session* session) {
    for (int i = 0; i < 3; ++i) {
        dibs_assignment given = {};
        const int code = dibs_next_assignment(session, DIBS_NOWAIT, &given);
        if (code != DIBS_OK && code != DIBS_EPAYLOAD) return;
        if (code == DIBS_EPAYLOAD) {
            (void)dibs_refuse(session, given.slot, given.round, 7, 1, DIBS_NOWAIT);
            continue;
        }
        read(given.body, given.body_size);
        for (size_t option = 0; option < given.option_count; ++option) {
            read(given.options[option].key, std::strlen(given.options[option].key));
            read(given.options[option].value, std::strlen(given.options[option].value));
        }
        for (size_t label = 0; label < given.label_count; ++label)
            read(given.labels[label], std::strlen(given.labels[label]));
        for (size_t label = 0; label < given.prefer_count; ++label)
            read(given.prefer[label], std::strlen(given.prefer[label]));
        (void)dibs_confirm(session, given.slot, given.round, "a", 1, DIBS_NOWAIT);
        (void)dibs_done(session, given.slot, given.round, "b", 1, 1, DIBS_NOWAIT);
        (void)dibs_withdraw(session, given.slot, DIBS_NOWAIT);
    }
}

// What a caller does with a session, whatever stands in its segments.
void use(dibs_session* session) {
    look_around(session);
    auto options = sized<dibs_claim_options>();
    dibs_op ops[] = {sized<dibs_op>(), sized<dibs_op>()};
    for (dibs_op& op : ops) {
        op.kind = DIBS_OP_CLAIM;
        op.claim = &options;
    }
    (void)dibs_submit(session, ops, 1);
    dibs_completion ends[4];
    const int reaped = dibs_reap(session, ends, 4, 0);
    for (int i = 0; i < reaped; ++i) {
        if (ends[i].outcome == DIBS_GRANTED) use_lease(session, ends[i].lease);
    }
    work(session);
    options.requeue = 1;
    (void)dibs_submit(session, ops, 2);
    (void)dibs_dispatch(session);
    (void)dibs_arm(session);
    (void)dibs_cancel(session, ops[1].ticket);
    (void)dibs_reap(session, ends, 4, 0);
    (void)dibs_end_code(session);
    auto latency = sized<dibs_latency>();
    (void)dibs_session_latency(session, &latency);
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
               .cut = what >= 128 && (what >> 2U) % 8 == 7,
               .segments = {segments.up.bytes(), segments.down.bytes(), segments.board.bytes()}});
    static shm::Lines told_down;
    static shm::Lines told_board;
    told_down = segments.down;
    told_board = segments.board;
    dibs_session* session = nullptr;
    char text[256];
    auto options = sized<dibs_connect_options>();
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
