// tests/clientlib/claim_test.cpp -- one claim after the other: its outcomes, its refusals, its
// timeout while the broker is down, and what its grant brings.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "clientlib/session.hpp"
#include "shm/histogram.hpp"
#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

using Attributes = std::vector<std::pair<std::string, std::string>>;

constexpr char kDevice[] = "device=3\0path=/dev/gpu3";  // its last byte ends the second one

TEST(Claim, CarriesEverythingToTheBrokerAndTheGrantBack) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        if (entry.op != Op::kClaim) return session.result(entry);
        const std::string attributes(kDevice, sizeof kDevice);
        const uint32_t room = session.write_room(Attributes{{attributes, "port 7"}, {"", ""}});
        session.grant(entry, 0x500000002ULL, 77, 3'000'000'000, room);
    });
    Client client(broker);
    dibs_claim_options options = {};
    options.size = sizeof options;
    options.units = 2;
    options.timeout_ns = 5 * DIBS_SECOND;
    options.interval_ns = 4 * DIBS_SECOND;
    options.when_busy = DIBS_BUSY_REJECT;
    options.key[0] = 9;
    dibs_completion end = {};
    ASSERT_EQ(dibs_claim(client, 0, &options, &end), DIBS_OK);
    EXPECT_EQ(end.kind, DIBS_CLAIM_ENDED);
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
    EXPECT_EQ(end.lease.id, 0x500000002ULL);
    EXPECT_EQ(end.lease.fence, 77U);
    EXPECT_EQ(end.lease.units, 2U);
    EXPECT_EQ(end.interval_ns, 3 * DIBS_SECOND);

    const Submission sent = broker.seen().at(0);
    EXPECT_EQ(sent.op, Op::kClaim);
    EXPECT_EQ(sent.units, 2);
    EXPECT_EQ(sent.id, 5'000'000'000U);
    EXPECT_EQ(sent.fence, 4'000'000'000U);
    EXPECT_EQ(sent.flags, shm::OpFlag::kReject);
    EXPECT_EQ(sent.key[0], 9);
    EXPECT_EQ(sent.payload_size, 0U);

    const char* value = "untouched";
    EXPECT_EQ(dibs_lease_attribute(client, &end.lease, 0, "device", &value), DIBS_OK);
    EXPECT_STREQ(value, "3");
    EXPECT_EQ(dibs_lease_attribute(client, &end.lease, 0, "path", &value), DIBS_OK);
    EXPECT_STREQ(value, "/dev/gpu3");
    EXPECT_EQ(dibs_lease_attribute(client, &end.lease, 0, "dev", &value), DIBS_ENOVALUE);
    EXPECT_EQ(dibs_lease_attribute(client, &end.lease, 1, "device", &value), DIBS_ENOVALUE);
    EXPECT_EQ(dibs_lease_attribute(client, &end.lease, 2, "device", &value), DIBS_EUNITS);
    const void* answer = nullptr;
    size_t size = 0;
    ASSERT_EQ(dibs_lease_answer(client, &end.lease, 0, &answer, &size), DIBS_OK);
    EXPECT_EQ(std::string(static_cast<const char*>(answer), size), "port 7");
    EXPECT_EQ(dibs_lease_answer(client, &end.lease, 1, &answer, &size), DIBS_ENOVALUE);
    dibs_slot slot = {};
    EXPECT_EQ(dibs_lease_slot(client, &end.lease, 1, &slot), DIBS_OK);
    EXPECT_EQ(slot.number, 41U);
    int64_t left = 0;
    EXPECT_EQ(dibs_lease_remaining(client, &end.lease, &left), DIBS_OK);
    EXPECT_GT(left, 0);
    EXPECT_LE(left, 3 * DIBS_SECOND);
}

// The holder of a lease whose worker answers twice: at the beginning, and with done.
struct TwoAnswers : testing::Test {
    TwoAnswers()
        : broker([this](FakeSession& session, const Submission& entry) {
              if (entry.op != Op::kClaim) return session.result(entry);
              room = session.write_room(Attributes{{"", "port 7"}});
              session.grant(entry, kLease, 77, 0, room);
          }),
          client(broker),
          lease(client.claim().lease) {}
    void end(Reason reason) {
        broker.call([=](FakeSession& session) {
            session.event(0, shm::event_word(shm::LeaseEvent::kEnded, reason, kLease >> 32));
        });
    }
    // Null where there is none.
    const char* answer() {
        const void* bytes = nullptr;
        size_t size = 0;
        if (dibs_lease_answer(client, &lease, 0, &bytes, &size) != DIBS_OK) return nullptr;
        text.assign(static_cast<const char*>(bytes), size);
        return static_cast<const char*>(bytes);
    }

    static constexpr uint64_t kLease = 0x500000002ULL;
    uint32_t room = 0;
    FakeBroker broker;
    Client client;
    dibs_lease lease;
    std::string text;
};

TEST_F(TwoAnswers, TheLastOneIsReadOnceTheLeaseEndedWithIt) {
    const char* first = answer();
    EXPECT_EQ(text, "port 7");
    broker.call([this](FakeSession& session) { session.write_last_answer(room, "exit 0"); });
    EXPECT_EQ(answer(), first);  // its turn may be taken back
    EXPECT_EQ(text, "port 7");
    end(Reason::kDone);
    EXPECT_NE(answer(), first);
    EXPECT_EQ(text, "exit 0");
    EXPECT_EQ(std::string(first, 6), "port 7");
}

TEST_F(TwoAnswers, TheFirstOneStaysWhereTheLastIsNothingOrAnotherEndCame) {
    end(Reason::kDone);
    (void)answer();
    EXPECT_EQ(text, "port 7");
    broker.call([this](FakeSession& session) { session.write_last_answer(room, "exit 0"); });
    end(Reason::kExpiredLease);
    (void)answer();
    EXPECT_EQ(text, "port 7");
}

TEST_F(TwoAnswers, ALastOneThatIsLargerThanItsPlaceIsNotRead) {
    broker.call(
        [this](FakeSession& session) { session.write_last_answer(room, std::string(33, 'x')); });
    end(Reason::kDone);
    EXPECT_EQ(answer(), nullptr);
}

TEST(Claim, NamesTheHolderWhenItIsRejected) {
    FakeBroker broker([](FakeSession& session, const Submission& entry) {
        shm::Completion completion;
        completion.user_data = entry.user_data;
        completion.kind = shm::CompletionKind::kClaim;
        completion.outcome = Outcome::kRejected;
        completion.reason = Reason::kBusy;
        completion.tag = entry.tag;
        completion.value = 10'000'000;
        shm::set_holder(completion, {1000, 4711, 5'000'000'000, 12});
        session.complete(completion);
    });
    Client client(broker);
    const dibs_completion end = client.claim(0);
    EXPECT_EQ(end.outcome, DIBS_REJECTED);
    EXPECT_EQ(end.code, DIBS_EBUSY);
    EXPECT_EQ(end.retry_after_ns, 10 * DIBS_MILLISECOND);
    EXPECT_EQ(end.holder.uid, 1000U);
    EXPECT_EQ(end.holder.pid, 4711U);
    EXPECT_EQ(end.holder.age_ns, 5 * DIBS_SECOND);
    EXPECT_EQ(end.holder.claim, 12U);
    EXPECT_EQ(end.lease.id, 0U);
}

TEST(Claim, HasEachOutcomeThatTheBrokerSays) {
    std::atomic<Outcome> outcome = Outcome::kExpired;
    FakeBroker broker([&outcome](FakeSession& session, const Submission& entry) {
        session.refuse(entry, outcome, Reason::kOk);
    });
    Client client(broker);
    EXPECT_EQ(client.claim().outcome, DIBS_EXPIRED);
    outcome = Outcome::kCancelled;
    EXPECT_EQ(client.claim().outcome, DIBS_CANCELLED);
    outcome = Outcome::kRejected;
    EXPECT_EQ(client.claim().outcome, DIBS_REJECTED);
}

TEST(Claim, IsRefusedForEachBadOptionWithItsCode) {
    FakeBroker broker;
    Client client(broker);
    dibs_claim_options good = {};
    good.size = sizeof good;
    dibs_completion end = {};
    const auto code_of = [&](auto change) {
        dibs_claim_options options = good;
        change(options);
        return dibs_claim(client, 0, &options, &end);
    };
    const char* labels[] = {"a", nullptr};
    std::vector<const char*> many_labels(33, "l");
    dibs_option no_key = {"", "v"};
    std::vector<dibs_option> many_options(17, dibs_option{"k", "v"});
    std::vector<char> body(20'000);
    EXPECT_EQ(code_of([](auto& o) { o.timeout_ns = -1; }), DIBS_ENEGATIVE);
    EXPECT_EQ(code_of([](auto& o) { o.interval_ns = -1; }), DIBS_ENEGATIVE);
    EXPECT_EQ(code_of([](auto& o) { o.units = 257; }), DIBS_EUNITS);
    EXPECT_EQ(code_of([](auto& o) { o.when_busy = 4; }), DIBS_EARGUMENT);
    EXPECT_EQ(code_of([](auto& o) { o.size = 3; }), DIBS_ESIZE);
    EXPECT_EQ(code_of([](auto& o) { o.body_size = 1; }), DIBS_EARGUMENT);
    EXPECT_EQ(code_of([&](auto& o) { o.body = body.data(), o.body_size = 20'000; }), DIBS_EPAYLOAD);
    EXPECT_EQ(code_of([&](auto& o) { o.body = body.data(), o.body_size = 16'384; }), DIBS_EPAYLOAD);
    EXPECT_EQ(code_of([&](auto& o) { o.labels = labels, o.label_count = 2; }), DIBS_ELABELS);
    EXPECT_EQ(code_of([&](auto& o) { o.labels = many_labels.data(), o.label_count = 33; }),
              DIBS_ELABELS);
    EXPECT_EQ(code_of([&](auto& o) { o.options = &no_key, o.option_count = 1; }), DIBS_EOPTIONS);
    EXPECT_EQ(code_of([&](auto& o) { o.options = many_options.data(), o.option_count = 17; }),
              DIBS_EOPTIONS);
    EXPECT_EQ(dibs_claim(client, 5, &good, &end), DIBS_EPOOL);
    EXPECT_EQ(dibs_claim(client, 0, &good, nullptr), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_claim(nullptr, 0, &good, &end), DIBS_EARGUMENT);
    EXPECT_TRUE(broker.seen().empty());  // refused: nothing left this process
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
}

TEST(Claim, ExpiresInTimeThoughTheBrokerIsDownAndALateGrantIsReleased) {
    FakeBroker broker;
    Client client(broker);
    broker.hold();
    const dibs_completion end = client.claim(5 * DIBS_MILLISECOND);
    EXPECT_EQ(end.outcome, DIBS_EXPIRED);
    broker.go_on();
    broker.wait_for(2);  // the claim, granted by the script, and its cancel
    dibs_completion none = {};
    EXPECT_EQ(dibs_reap(client, &none, 1, DIBS_NOWAIT), 0);
    broker.wait_for(3);
    const std::vector<Submission> seen = broker.seen();
    EXPECT_EQ(seen[0].op, Op::kClaim);
    EXPECT_EQ(seen[1].op, Op::kCancel);
    EXPECT_EQ(seen[1].tag, seen[0].tag);
    EXPECT_EQ(seen[2].op, Op::kRelease);
    EXPECT_EQ(seen[2].id, uint64_t{1} << 32 | 1);
    EXPECT_EQ(seen[2].fence, 1U);
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
}

TEST(Claim, NowOrNotAtAllComesBackThoughTheBrokerIsDown) {
    FakeBroker broker;
    Client client(broker);
    broker.hold();
    EXPECT_EQ(client.claim(0).outcome, DIBS_EXPIRED);
    broker.go_on();
}

TEST(Claim, OwesItsCancelWhileTheRingIsFullAndPaysItLater) {
    FakeBroker broker;
    dibs_connect_options sizes = {};
    sizes.submission_entries = 8;
    sizes.completion_entries = 64;
    Client client(broker, sizes);
    broker.hold();
    // Four claims and three cancels fill the ring, but for close's line; a cancel is owed.
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(client.claim(0).outcome, DIBS_EXPIRED);
    dibs_completion end = {};
    dibs_claim_options now = {};
    now.size = sizeof now;
    EXPECT_EQ(dibs_claim(client, 0, &now, &end), DIBS_EFULL);
    broker.go_on();
    broker.wait_for(7);
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
    // Whatever the script granted to claims that had been given up has been given back.
    dibs_completion none = {};
    EXPECT_EQ(dibs_reap(client, &none, 1, DIBS_NOWAIT), 0);
    size_t releases = 0;
    size_t cancels = 0;
    for (const Submission& entry : broker.seen()) {
        releases += entry.op == Op::kRelease ? 1 : 0;
        cancels += entry.op == Op::kCancel ? 1 : 0;
    }
    EXPECT_EQ(releases, 4U);
    EXPECT_EQ(cancels, 3U);
}

TEST(Claim, RecordsItsLatencyInTheSessionsHistogram) {
    FakeBroker broker;
    Client client(broker);
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
    uint64_t recorded = 0;
    broker.call([&recorded](FakeSession& session) {
        auto* up = reinterpret_cast<std::byte*>(&session.up());
        auto* histogram =
            reinterpret_cast<shm::UpHistogram*>(up + shm::plan_up(session.sizes).histogram);
        for (const auto& bucket : histogram->bucket)
            recorded += bucket.load();
    });
    EXPECT_EQ(recorded, 10U);
}

// What was awaited may be taken in where the library looks before it sleeps.
TEST(Claim, TakesNothingForItsGrantOnceThatHasCome) {
    FakeBroker broker;
    Client client(broker);
    const dibs_completion first = client.claim();
    dibs_session* session = client;
    session->awaited_plainly = true;
    broker.call([](FakeSession& other) {
        shm::Completion late;
        late.kind = shm::CompletionKind::kNotice;
        other.complete(late);
    });
    EXPECT_FALSE(session->take_awaited_grant());
    session->awaited_plainly = false;
    EXPECT_EQ(dibs_release(client, &first.lease, DIBS_NOWAIT), DIBS_OK);
}

TEST(Claim, IsRefusedOnceEveryTagHoldsALease) {
    FakeBroker broker;
    dibs_connect_options sizes = {};
    sizes.leases_max = 8;
    Client client(broker, sizes);
    dibs_completion held[8] = {};
    for (auto& one : held)
        one = client.claim();
    dibs_completion end = {};
    EXPECT_EQ(dibs_claim(client, 0, nullptr, &end), DIBS_ELIMIT);
    EXPECT_EQ(dibs_release(client, &held[3].lease, DIBS_NOWAIT), DIBS_OK);
    EXPECT_EQ(client.claim().outcome, DIBS_GRANTED);
}

}  // namespace
}  // namespace dibs::test
