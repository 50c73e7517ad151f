// tests/clientlib/hostile_test.cpp -- nonsense in DOWN ends the session, and never the process.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <random>

#include "tests/clientlib/fixture.hpp"

namespace dibs::test {
namespace {

int code_after(const std::function<void(FakeSession&)>& work) {
    FakeBroker broker([](FakeSession&, const Submission&) {});
    Client client(broker);
    dibs_op op = operation(DIBS_OP_CLAIM, 1);
    EXPECT_EQ(dibs_submit(client, &op, 1), 1);
    broker.wait_for(1);
    broker.call(work);
    dibs_completion end = {};
    EXPECT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(end.outcome, DIBS_BROKER_LOST);
    EXPECT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), DIBS_ESESSION);
    return dibs_end_code(client);
}

TEST(Nonsense, InARingsSequenceEndsTheSession) {
    EXPECT_EQ(code_after([](FakeSession& session) {
                  auto* line = reinterpret_cast<shm::CompletionEntry*>(
                      session.down_bytes() + shm::plan_down(session.sizes).completion);
                  line->sequence.store(99);
              }),
              DIBS_EMALFORMED);
}

TEST(Nonsense, InACompletionEndsTheSession) {
    shm::Completion wrong;
    wrong.kind = static_cast<shm::CompletionKind>(200);
    EXPECT_EQ(code_after([&](FakeSession& session) { session.complete(wrong); }), DIBS_EMALFORMED);
    wrong.kind = shm::CompletionKind::kClaim;
    wrong.tag = 5000;
    EXPECT_EQ(code_after([&](FakeSession& session) { session.complete(wrong); }), DIBS_EMALFORMED);
    wrong.tag = 17;  // a tag without a claim
    EXPECT_EQ(code_after([&](FakeSession& session) { session.complete(wrong); }), DIBS_EMALFORMED);
    wrong.kind = shm::CompletionKind::kResult;
    wrong.user_data = 5;  // nobody asked
    EXPECT_EQ(code_after([&](FakeSession& session) { session.complete(wrong); }), DIBS_EMALFORMED);
    wrong.user_data = 0xffffffff;  // what nobody's answer is called while nobody waits
    EXPECT_EQ(code_after([&](FakeSession& session) { session.complete(wrong); }), DIBS_EMALFORMED);
}

TEST(Nonsense, InTheConsumedIndexEndsTheSession) {
    FakeBroker broker([](FakeSession&, const Submission&) {});
    dibs_connect_options sizes = {};
    sizes.submission_entries = 8;
    sizes.completion_entries = 64;
    Client client(broker, sizes);
    broker.hold();
    std::vector<dibs_op> ops(7, operation(DIBS_OP_CLAIM, 1));
    ASSERT_EQ(dibs_submit(client, ops.data(), 7), 7);
    broker.call([](FakeSession& session) { session.down().submission_consumed.store(1000); });
    EXPECT_EQ(dibs_submit(client, ops.data(), 1), DIBS_ESESSION);
}

// A grant whose room is anywhere and holds anything: accessors answer or refuse.
TEST(Nonsense, InAGrantRoomIsNotFollowedOutOfTheMapping) {
    std::mt19937 engine(20);
    const auto random = [&engine] { return static_cast<uint32_t>(engine()); };
    FakeBroker broker([&random](FakeSession& session, const Submission& entry) {
        if (entry.op != Op::kClaim) return session.result(entry);
        std::byte* area = session.down_bytes() + shm::plan_down(session.sizes).payload;
        const uint32_t room =
            random() % 4 == 0 ? random() : random() % (session.sizes.down_payload + 64);
        for (uint32_t i = 0; i < 64 && room + i < session.sizes.down_payload; ++i) {
            const uint32_t style = random() % 3;
            area[room + i] = static_cast<std::byte>(style == 0 ? random() : style == 1 ? 0 : 255);
        }
        session.grant(entry, uint64_t{1} << 32 | 1, 1, 0, room);
    });
    Client client(broker);
    for (int i = 0; i < 2000; ++i) {
        const dibs_completion end = client.claim();
        ASSERT_EQ(end.outcome, DIBS_GRANTED);
        dibs_slot slot = {};
        if (dibs_lease_slot(client, &end.lease, 0, &slot) == DIBS_OK) {
            size_t sum = 0;
            for (uint32_t at = 0; at < slot.attributes_size; ++at) {
                sum += static_cast<unsigned char>(slot.attributes[at]);
            }
            const auto* answer = static_cast<const uint8_t*>(slot.answer);
            for (size_t at = 0; at < slot.answer_size; ++at)
                sum += answer[at];
            ASSERT_LE(sum, 255U * 2 * 65536);
        }
        const char* value = nullptr;
        const int code = dibs_lease_attribute(client, &end.lease, 0, "key", &value);
        ASSERT_TRUE(code == DIBS_OK || code == DIBS_ENOVALUE);
        ASSERT_EQ(dibs_release(client, &end.lease, DIBS_NOWAIT), DIBS_OK);
    }
}

}  // namespace
}  // namespace dibs::test
