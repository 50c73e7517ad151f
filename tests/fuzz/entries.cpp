// tests/fuzz/entries.cpp -- two sessions that submit whatever the input says, in good order or not:
// the parts of a turn read it, and every row holds after it.
//
// The input is a sequence of steps, each begun by one byte: an entry of 56 bytes with the sequence
// that is next; the same with a sequence of its own; payload bytes; a turn at a later time; a
// completion head; a death.
// SPDX-License-Identifier: Apache-2.0
#include "shm/operation.hpp"
#include "tests/broker/bench.hpp"
#include "tests/fuzz/bytes.hpp"

namespace {

using dibs::Session;
using dibs::fuzz::Bytes;
using dibs::fuzz::expect;
using dibs::test::Bench;
namespace shm = dibs::shm;

constexpr shm::SessionSizes kSizes = {16, 64, 4096, 4096, 16};
// Fewer claims, leases and names than two sessions can ask for.
constexpr dibs::core::Limits kLimits = {.pools = 5,
                                        .sessions = 4,
                                        .slots = 16,
                                        .claims = 24,
                                        .leases = 16,
                                        .arena_blocks = 24,
                                        .accounts = 4,
                                        .label_sets = 4,
                                        .applications = 8,
                                        .groups = 10,
                                        .tasks = 16};

void make_pools(Bench& bench) {
    const std::string_view attributes[] = {{"device=0\0", 9}, {"device=1\0", 9}};
    bench.pool({.name = "gpu",
                .slots = 4,
                .backlog_max = 8,
                .attributes_max = 16,
                .interval_max_ns = 5000,
                .grace_ns = 500,
                .slot_attributes = attributes});
    bench.pool({.name = "web",
                .kind = shm::PoolKind::kWorker,
                .payload_max = 512,
                .answer_max = 64,
                .attributes_max = 64,
                .reservation_ttl_ns = 300});
    bench.pool({.name = "quick",
                .kind = shm::PoolKind::kWorker,
                .answer_max = 8,
                .attributes_max = 8,
                .release_is_ready = true});
    bench.pool({.name = "shared",
                .slots = 2,
                .payload_max = 512,
                .grace_ns = 500,
                .order = shm::PoolOrder::kAccount});
    bench.pool({.name = "crowd",
                .kind = shm::PoolKind::kWorker,
                .order = shm::PoolOrder::kPriority,
                .workers_max = 3,
                .workers_min = 1,
                .creates_max = 0,
                .create_throttle_ns = 20,
                .idle_timeout_ns = 300,
                .boot_timeout_ns = 2000});
    const int64_t balance[] = {1'000'000};
    bench.core.begin_turn(bench.now);
    bench.core.set_type({.name = "t", .pool = "crowd"}, nullptr);
    bench.core.set_account({.name = "rich", .rate = balance, .balance = balance}, nullptr);
    bench.core.decide();
    bench.core.commit();
    bench.core.clear();
}

// Mostly an entry that could mean something: fields of any value make few of those.
shm::Submission entry_from(Bytes& input) {
    shm::Submission entry = {};
    entry.user_data = input.take<uint8_t>();
    entry.op = static_cast<shm::Op>(input.take<uint8_t>() % 17);
    entry.flags = input.take<uint8_t>();
    entry.pool = input.take<uint8_t>() % 6;
    entry.units = input.take<uint8_t>();
    entry.tag = input.take<uint8_t>() % 20;
    const auto wide = input.take<uint8_t>();  // which of the wide fields are any, not small
    const auto field = [&](unsigned bit) {
        return (wide >> bit & 1U) != 0 ? input.take<uint64_t>() : uint64_t{input.take<uint8_t>()};
    };
    entry.payload_offset = static_cast<uint32_t>(field(0));
    entry.payload_size = static_cast<uint32_t>(field(1));
    entry.id = (wide & 4U) != 0 ? field(2) : field(2) << 32 | input.take<uint8_t>();
    entry.fence = field(3);
    if ((wide & 16U) != 0) shm::set_key_word(entry, input.take<uint64_t>());
    return entry;
}

void turn(Bench& bench, uint64_t passes) {
    bench.now += passes;
    (void)bench.turn();
    for (int i = 0; i < 100 && bench.core.work_left(); ++i)
        (void)bench.turn();
}

void check(const Bench& bench) {
    const auto wrongs = bench.core.check_all();
    for (const std::string& wrong : wrongs)
        std::printf("%s\n", wrong.c_str());
    expect(wrongs.empty(), "every row holds");
}

void step(Bench& bench, Session& session, unsigned what, Bytes& input) {
    switch (what) {
        case 0:
        case 1:
        case 2:
            bench.push(session, entry_from(input));
            return;
        case 3: {  // 64 bytes of any kind, where the next entry or another is looked for
            const auto line = input.take<uint8_t>() % kSizes.submission_entries;
            const auto raw = input.take(sizeof(shm::SubmissionEntry));
            std::memcpy(
                reinterpret_cast<std::byte*>(Bench::lines(session) + line), raw.data(), raw.size());
            return;
        }
        case 4: {
            const auto at = input.take<uint16_t>() % kSizes.up_payload;
            const auto raw = input.take(input.take<uint8_t>());
            std::memcpy(Bench::up_payload(session) + at,
                        raw.data(),
                        std::min<size_t>(raw.size(), kSizes.up_payload - at));
            return;
        }
        case 5:
            Bench::up(session).completion_head.store((input.take<uint8_t>() & 3U) != 0
                                                         ? session.completion_tail
                                                         : input.take<uint8_t>());
            return;
        case 6:
            turn(bench, input.take<uint16_t>());
            return;
        default:
            if (session.ending) return;
            if (input.take<uint8_t>() % 2 == 0) {
                bench.sessions.drain(&session);
            } else {
                bench.sessions.end(&session, shm::Reason::kOk);
            }
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    Bench bench(kLimits);
    make_pools(bench);
    Session* sessions[] = {&bench.open(kSizes), &bench.open(kSizes)};
    sessions[1]->admin = true;  // it may name whose account pays
    Bytes input(bytes, size);
    while (!input.empty()) {
        const auto what = input.take<uint8_t>();
        Session& session = *sessions[what >> 7U];
        if (bench.sessions.at(session.row) == &session) step(bench, session, what % 8U, input);
    }
    check(bench);
    const auto answered = [](const Session* session) { return session->completion_tail != 0; };
    if (answered(sessions[0]) || answered(sessions[1])) ++dibs::fuzz::understood;
    for (Session* session : sessions) {
        if (bench.sessions.at(session->row) == session) bench.sessions.drain(session);
    }
    for (int i = 0; i < 8; ++i)
        turn(bench, 1'000'000);
    check(bench);
    expect(bench.core.pool(0).idle == 4, "what the dead held is idle again");
    expect(bench.core.pool(3).idle == 2, "what was taken for a better claim is idle again");
    expect(bench.core.pool(1).slots + bench.core.pool(2).slots == 0, "their slots are gone");
    return 0;
}
