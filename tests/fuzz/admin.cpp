// tests/fuzz/admin.cpp -- a request of an administrator: no table, or an answer; and the rows hold.
//
// The limits of the verifier are those of broker/conversations. The first byte says who asks.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin.hpp"
#include "broker/desk.hpp"
#include "tests/broker/bench.hpp"
#include "tests/fuzz/bytes.hpp"

namespace {

// A pool ordered by account with a worker that is only reported, and an account that pays.
void make_shared(dibs::test::Bench& bench) {
    namespace core = dibs::core;
    bench.pool({.name = "shared",
                .kind = dibs::shm::PoolKind::kWorker,
                .order = dibs::shm::PoolOrder::kAccount});
    const int64_t balance[] = {1'000'000};
    bench.core.begin_turn(bench.now);
    bench.core.set_account({.name = "a", .rate = balance, .balance = balance}, nullptr);
    bench.core.apply(core::Report{.kind = core::Report::Kind::kIdle, .pool = 2, .worker = "w0"});
    bench.core.decide();
    bench.core.commit();
    bench.core.clear();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    using dibs::fuzz::expect;
    namespace admin = dibs::admin;
    dibs::fuzz::Bytes input(bytes, std::min<size_t>(size, 4096));
    const auto who = input.take<uint8_t>();
    alignas(8) static uint8_t packet[4096];
    const std::span<const uint8_t> rest = input.rest();
    std::memcpy(packet, rest.data(), rest.size());
    flatbuffers::Verifier verifier(packet, rest.size(), 4, 4);
    if (!verifier.VerifyBuffer<admin::Request>(nullptr)) return 0;
    dibs::test::Bench bench;
    bench.pool({.name = "gpu", .slots = 2});
    bench.pool({.name = "web", .kind = dibs::shm::PoolKind::kWorker});
    make_shared(bench);
    dibs::Session& session = bench.open();
    for (uint16_t tag = 0; tag < 6; ++tag)
        bench.push(session, dibs::test::claim(tag, tag < 4 ? 0 : 2));
    (void)bench.turn();
    dibs::Desk desk(bench.core, bench.quotas);
    dibs::AdminJob job;
    job.uid = (who & 1U) != 0 ? 1000 : 2000;
    job.is_admin = (who & 2U) != 0;
    flatbuffers::GetRoot<admin::Request>(packet)->UnPackTo(&job.request);
    bench.core.begin_turn(++bench.now);
    desk.serve(job);
    bench.core.decide();
    bench.core.commit();
    bench.core.clear();
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(admin::Answer::Pack(builder, &job.answer));
    expect(builder.GetSize() != 0, "there is an answer");
    (void)bench.turn();
    expect(bench.core.check_all().empty(), "the rows hold");
    return 0;
}
