// tests/fuzz/admin.cpp -- a request of an administrator: no table, or an answer; and the rows hold.
//
// The limits of the verifier are those of broker/admin/conversations. The first byte says who asks.
// Of an input that is no table, which are most, the bytes choose the fields of some requests
// instead.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/admin/admin.hpp"
#include "broker/admin/desk.hpp"
#include "broker/turn/pool_sets.hpp"
#include "tests/broker/bench.hpp"
#include "tests/fuzz/bytes.hpp"

namespace {

using dibs::fuzz::Bytes;
using dibs::fuzz::expect;
namespace admin = dibs::admin;

constexpr dibs::core::Limits kLimits = {.pools = 4,
                                        .sessions = 4,
                                        .slots = 16,
                                        .claims = 16,
                                        .leases = 16,
                                        .arena_blocks = 32,
                                        .accounts = 8,
                                        .label_sets = 8,
                                        .applications = 8,
                                        .groups = 10,
                                        .tasks = 16};

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

std::string some_text(Bytes& input) {
    constexpr std::array kTexts = {"", "gpu", "web", "shared", "a", "uid:1000", "w0", "size:1"};
    const auto which = input.take<uint8_t>();
    if (which < 240) return kTexts[which % kTexts.size()];
    const auto raw = input.take(size_t{8} * (which % 16U));
    return {raw.begin(), raw.end()};
}

std::vector<std::string> some_texts(Bytes& input) {
    std::vector<std::string> texts(input.take<uint8_t>() % 4U);
    for (std::string& text : texts)
        text = some_text(input);
    return texts;
}

// Mostly one that something may be called by.
uint64_t some_number(Bytes& input) {
    const auto small = input.take<uint8_t>();
    return small < 240 ? small % 16U : input.take<uint64_t>();
}

template <typename T>
std::vector<T> some_numbers(Bytes& input) {
    std::vector<T> numbers(input.take<uint8_t>() % 7U);
    for (T& number : numbers)
        number = static_cast<T>(some_number(input));
    return numbers;
}

std::unique_ptr<admin::AccountChangeT> some_change(Bytes& input) {
    auto change = std::make_unique<admin::AccountChangeT>();
    const auto given = input.take<uint8_t>();
    change->rate = some_numbers<int64_t>(input);
    change->rate_given = (given & 1U) != 0;
    change->balance = some_numbers<int64_t>(input);
    change->balance_given = (given & 2U) != 0;
    if ((given & 4U) != 0) change->charge_max_ns = some_number(input);
    if ((given & 8U) != 0) change->fanout_max = static_cast<uint32_t>(some_number(input));
    if ((given & 16U) != 0) change->free_tasks_disabled = (given & 32U) != 0;
    change->label_keys = some_texts(input);
    change->label_limits = some_numbers<uint32_t>(input);
    return change;
}

admin::RequestT some_request(Bytes& input) {
    admin::RequestT request;
    request.ask = static_cast<admin::Ask>(input.take<uint8_t>() % 38U);
    request.pool = some_text(input);
    request.cursor = some_number(input);
    request.number = some_number(input);
    request.id = some_number(input) | some_number(input) << 32U;  // row, generation
    request.session = some_number(input) | some_number(input) << 32U;
    request.tag = static_cast<uint32_t>(some_number(input));
    const auto flags = input.take<uint8_t>();
    request.by_tag = (flags & 1U) != 0;
    request.more = (flags & 2U) != 0;
    request.labels_given = (flags & 4U) != 0;
    request.prefer_given = (flags & 8U) != 0;
    if ((flags & 16U) != 0) request.change = some_change(input);
    request.interval_ns = some_number(input);
    request.account = some_text(input);
    request.report = static_cast<admin::ReportKind>(input.take<uint8_t>() % 7U);
    request.worker = some_text(input);
    request.labels = some_texts(input);
    request.prefer = some_texts(input);
    request.age_ns = some_number(input);
    if ((flags & 32U) != 0) request.error = some_text(input);
    for (size_t count = input.take<uint8_t>() % 3U; count > 0; --count) {
        auto puller = std::make_unique<admin::PullerT>();
        puller->worker = some_text(input);
        puller->labels = some_texts(input);
        request.pullers.push_back(std::move(puller));
    }
    return request;
}

void serve(dibs::test::Bench& bench, dibs::Desk& desk, uint8_t who, admin::RequestT request) {
    dibs::AdminJob job;
    job.uid = (who & 1U) != 0 ? 1000 : 2000;
    job.is_admin = (who & 2U) != 0;
    job.request = std::move(request);
    bench.core.begin_turn(++bench.now);
    desk.serve(job);
    bench.core.decide();
    if (job.pulls) desk.take_pulled(job);
    bench.core.commit();
    bench.core.clear();
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(admin::Answer::Pack(builder, &job.answer));
    expect(builder.GetSize() != 0, "there is an answer");
    (void)bench.turn();
}

void check(const dibs::test::Bench& bench) {
    expect(bench.core.check_all().empty(), "the rows hold");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    Bytes input(bytes, std::min<size_t>(size, 4096));
    const auto who = input.take<uint8_t>();
    alignas(8) static uint8_t packet[4096];
    const std::span<const uint8_t> rest = input.rest();
    std::memcpy(packet, rest.data(), rest.size());
    dibs::test::Bench bench(kLimits);
    bench.pool({.name = "gpu", .slots = 2});
    bench.pool({.name = "web", .kind = dibs::shm::PoolKind::kWorker});
    make_shared(bench);
    dibs::Session& session = bench.open();
    for (uint16_t tag = 0; tag < 6; ++tag)
        bench.push(session, dibs::test::claim(tag, tag < 4 ? 0 : 2));
    (void)bench.turn();
    const dibs::PoolSets sets(bench.core, bench.board);
    dibs::Desk desk(bench.core, bench.quotas, bench.words, bench.sessions, sets);
    flatbuffers::Verifier verifier(packet, rest.size(), 4, 4);
    if (verifier.VerifyBuffer<admin::Request>(nullptr)) {
        ++dibs::fuzz::understood;
        admin::RequestT request;
        flatbuffers::GetRoot<admin::Request>(packet)->UnPackTo(&request);
        serve(bench, desk, who, std::move(request));
        check(bench);
        return 0;
    }
    serve(bench, desk, who, some_request(input));
    for (int more = 0; more < 3 && !input.empty(); ++more) {
        if ((who & 12U) == 0) check(bench);
        const auto asker = input.take<uint8_t>();
        serve(bench, desk, asker, some_request(input));
    }
    check(bench);
    return 0;
}
