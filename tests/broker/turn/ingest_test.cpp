// tests/broker/turn/ingest_test.cpp -- entries as a hostile client would write them.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/ingest.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::CompletionKind;
using shm::Op;
using shm::Outcome;
using shm::Reason;

struct IngestTest : testing::Test {
    void SetUp() override {
        bench.pool({.name = "tokens", .slots = 4});
        session = &bench.open();
    }
    shm::Completion answer_to(const shm::Submission& entry) {
        bench.push(*session, entry);
        EXPECT_EQ(bench.turn(), Ingest::Read::kOpen);
        return bench.next(*session).value_or(shm::Completion{});
    }
    Bench bench;
    Session* session = nullptr;
};

TEST_F(IngestTest, ReadsAnEntryOnceAndInOrder) {
    bench.push(*session, claim(1));
    bench.push(*session, claim(2));
    bench.turn();
    EXPECT_EQ(bench.next(*session)->tag, 1);
    EXPECT_EQ(bench.next(*session)->tag, 2);
    EXPECT_EQ(bench.turn(), Ingest::Read::kOpen);
    EXPECT_FALSE(bench.next(*session));
}

TEST_F(IngestTest, EndsASessionWhoseSequenceIsAhead) {
    shm::store_line(Bench::lines(*session), 128, 0, claim(1));
    Bench::lines(*session)[0].sequence.store(129);
    EXPECT_EQ(bench.turn(), Ingest::Read::kViolation);
    EXPECT_TRUE(session->ending);
}

TEST_F(IngestTest, EndsASessionWhoseUsedLineIsZeroed) {
    shm::Submission nothing;
    nothing.flags = shm::OpFlag::kQuiet;
    for (int i = 0; i < 128; ++i)
        bench.push(*session, nothing);
    while (bench.turn() == Ingest::Read::kMore) {
    }
    EXPECT_FALSE(session->ending);
    Bench::lines(*session)[0].sequence.store(0);  // as a page that was punched out reads
    EXPECT_EQ(bench.turn(), Ingest::Read::kViolation);
}

TEST_F(IngestTest, ReadsZeroesWhereAClientHasPunchedItsPagesOut) {
    shm::Submission nothing;
    nothing.flags = shm::OpFlag::kQuiet;
    for (int i = 0; i < 128; ++i)
        bench.push(*session, nothing);
    while (bench.turn() == Ingest::Read::kMore) {
    }
    const auto size = static_cast<off_t>(shm::plan_up(session->sizes).size);
    ASSERT_EQ(fallocate(session->up_fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size),
              0);
    EXPECT_EQ(bench.turn(), Ingest::Read::kViolation);
}

TEST_F(IngestTest, TakesAtMostItsBudgetOfEntriesInATurn) {
    shm::Submission nothing;
    for (uint64_t i = 0; i < 100; ++i)
        bench.push(*session, nothing);
    EXPECT_EQ(bench.turn(), Ingest::Read::kMore);
    EXPECT_EQ(session->down->submission_consumed.load(), 64U);
    EXPECT_EQ(bench.turn(), Ingest::Read::kOpen);
    EXPECT_EQ(session->down->submission_consumed.load(), 100U);
}

TEST_F(IngestTest, LetsATailAnnounceOnlyLinesThatAreThere) {
    EXPECT_EQ(session->up.look_again(), Armed::kQuiet);
    Bench::up(*session).submission_tail.store(1);
    EXPECT_EQ(session->up.look_again(), Armed::kViolation);
    bench.push(*session, claim(1));
    EXPECT_EQ(session->up.look_again(), Armed::kEntry);
    bench.turn();
    EXPECT_EQ(session->up.look_again(), Armed::kQuiet);
    Bench::up(*session).submission_tail.store(0);  // a batch that was taken before it was announced
    EXPECT_EQ(session->up.look_again(), Armed::kQuiet);
}

TEST_F(IngestTest, AnswersAnOperationThatIsNotOne) {
    shm::Submission entry;
    entry.op = static_cast<Op>(200);
    entry.user_data = 5;
    const shm::Completion answer = answer_to(entry);
    EXPECT_EQ(answer.kind, CompletionKind::kResult);
    EXPECT_EQ(answer.reason, Reason::kMalformed);
    EXPECT_EQ(answer.user_data, 5U);
}

TEST_F(IngestTest, AnswersFlagsThatNobodyHasDefined) {
    EXPECT_EQ(answer_to(word(Op::kRelease, 1, 1, 128)).reason, Reason::kMalformed);
    EXPECT_EQ(answer_to(word(Op::kRelease, 1, 1, shm::OpFlag::kOn)).reason, Reason::kMalformed);
    shm::Submission entry = claim(1);
    entry.flags = shm::OpFlag::kReject | shm::OpFlag::kCold;
    const shm::Completion answer = answer_to(entry);
    EXPECT_EQ(answer.kind, CompletionKind::kClaim);
    EXPECT_EQ(answer.outcome, Outcome::kRejected);
    EXPECT_EQ(answer.reason, Reason::kMalformed);
}

TEST_F(IngestTest, RejectsAClaimWhosePayloadLiesOutsideItsArea) {
    const uint32_t area = session->sizes.up_payload;
    const std::pair<uint32_t, uint32_t> places[] = {{area, 1},
                                                    {area - 1, 2},
                                                    {0xffffffffU, 16},
                                                    {0xfffffff0U, 0x20U},
                                                    {0, shm::kPayloadMax + 1},
                                                    {0, 0xffffffffU}};
    for (const auto& [offset, size] : places) {
        shm::Submission entry = claim(1);
        entry.payload_offset = offset;
        entry.payload_size = size;
        EXPECT_EQ(answer_to(entry).reason, Reason::kPayload) << offset << " " << size;
    }
    EXPECT_EQ(bench.core.pool(0).accepted_total, 0U);
}

TEST_F(IngestTest, RejectsAClaimWhosePayloadIsNoTable) {
    for (uint8_t fill = 0; fill < 255; ++fill) {
        std::memset(Bench::up_payload(*session), fill, 64);
        shm::Submission entry = claim(1);
        entry.payload_size = 64;
        const shm::Completion answer = answer_to(entry);
        if (answer.reason == Reason::kOk) {  // an empty table is one
            bench.push(*session, word(Op::kRelease, answer.id, answer.fence));
            bench.turn();
            (void)bench.next(*session);
        } else {
            EXPECT_EQ(answer.reason, Reason::kPayload);
        }
        bench.release_read(*session);
    }
}

TEST_F(IngestTest, RejectsATagOutOfRange) {
    EXPECT_EQ(answer_to(claim(256)).reason, Reason::kLimit);
    EXPECT_EQ(answer_to(claim(65535)).reason, Reason::kLimit);
    shm::Submission cancel;
    cancel.op = Op::kCancel;
    cancel.tag = 65535;
    EXPECT_EQ(answer_to(cancel).reason, Reason::kNotFound);
}

TEST_F(IngestTest, RejectsATagThatIsTakenAndLeavesItsHolderAlone) {
    const shm::Completion granted = answer_to(claim(1));
    ASSERT_EQ(granted.outcome, Outcome::kGranted);
    const uint32_t free = session->rooms.lines_free();
    EXPECT_EQ(answer_to(claim(1)).reason, Reason::kLimit);
    EXPECT_EQ(session->rooms.lines_free(), free);
    EXPECT_EQ(session->tags[1].first * 64, granted.data);
    EXPECT_EQ(answer_to(word(Op::kRelease, granted.id, granted.fence)).reason, Reason::kOk);
    EXPECT_EQ(session->rooms.lines_free(), free + 1);
}

TEST_F(IngestTest, RejectsTimesThatOnlyOverflow) {
    shm::Submission entry = claim(1);
    entry.id = uint64_t{1} << 63;
    EXPECT_EQ(answer_to(entry).reason, Reason::kMalformed);
    entry = claim(1);
    entry.fence = shm::kNever;
    EXPECT_EQ(answer_to(entry).reason, Reason::kMalformed);
}

TEST_F(IngestTest, AnswersIdsOfRowsThatDoNotExist) {
    for (const uint64_t id : {uint64_t{0xffffffff}, shm::kNever, uint64_t{256}}) {
        EXPECT_EQ(answer_to(word(Op::kRelease, id, 1)).reason, Reason::kNotFound) << id;
        EXPECT_EQ(answer_to(word(Op::kKeepalive, id, 1)).reason, Reason::kNotFound) << id;
        EXPECT_EQ(answer_to(word(Op::kReady, id, 1)).reason, Reason::kNotFound) << id;
        bench.release_read(*session);
    }
    EXPECT_EQ(answer_to(word(Op::kConfirm, 1, uint64_t{1} << 32)).reason, Reason::kMalformed);
}

TEST_F(IngestTest, HearsNothingBehindAClose) {
    bench.push(*session, claim(1));
    shm::Submission close;
    close.op = Op::kClose;
    bench.push(*session, close);
    bench.push(*session, claim(2));
    EXPECT_EQ(bench.turn(), Ingest::Read::kClosed);
    bench.turn();
    EXPECT_EQ(bench.core.pool(0).accepted_total, 1U);
    EXPECT_EQ(bench.core.pool(0).idle, 4U);
    EXPECT_TRUE(bench.core.check_all().empty());
}

TEST_F(IngestTest, ReadsTheRingOfADeadProcessToItsEnd) {
    for (uint16_t tag = 0; tag < 100; ++tag)
        bench.push(*session, claim(tag));
    bench.sessions.drain(session);
    for (int turns = 0; turns < 4; ++turns)
        bench.turn();
    EXPECT_EQ(bench.core.pool(0).accepted_total, 100U);
    EXPECT_EQ(bench.core.pool(0).cancelled_total + bench.core.pool(0).granted_total, 100U);
    EXPECT_EQ(bench.core.pool(0).idle, 4U);
    EXPECT_EQ(bench.sessions.at(0), nullptr);
}

TEST_F(IngestTest, EndsADeadSessionThoughAChildOfItGoesOnWriting) {
    for (int i = 0; i < 128; ++i)
        bench.push(*session, {});
    bench.sessions.drain(session);
    for (int turns = 0; turns < 4; ++turns) {
        bench.turn();  // 64 answers fill it
        for (int i = 0; i < 64; ++i)
            bench.push(*session, {});
    }
    EXPECT_EQ(bench.sessions.at(0), nullptr);
}

}  // namespace
}  // namespace dibs::test
