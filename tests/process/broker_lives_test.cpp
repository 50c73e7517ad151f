// tests/process/broker_lives_test.cpp -- dibsd with clients and workers that live and die.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/select.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/proc_text.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {
namespace {

using shm::CompletionKind;
using shm::Op;
using shm::Outcome;
using shm::Reason;

const char* const kWorker =
    "[[pool]]\nname = \"web\"\nkind = \"worker\"\npayload_max = 256\nanswer_max = 64\n"
    "reservation_ttl = ";
const char* const kPatient = "\"1h\"\n";

TEST(Dibsd, SaysThatItIsReadyOnItsSocket) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    EXPECT_EQ(dibsd.ready_line(), "dibsd: ready on " + folder.path() + "/dibs.sock");
}

TEST(Dibsd, GrantsAClaimOfACountedPoolAndTakesItBack) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    ASSERT_TRUE(client.attached());
    EXPECT_EQ(client.pool(0).idle, 2U);
    client.claim(7, 0, 2);
    const auto granted = client.wait();
    ASSERT_TRUE(granted);
    EXPECT_EQ(granted->kind, CompletionKind::kClaim);
    EXPECT_EQ(granted->outcome, Outcome::kGranted);
    EXPECT_EQ(granted->tag, 7);
    EXPECT_EQ(granted->fence, 1U);
    const auto* head = reinterpret_cast<const shm::GrantHead*>(client.room(granted->data));
    EXPECT_EQ(head->units, 2U);
    for (uint32_t unit = 0; unit < 2; ++unit) {
        const auto* slot = reinterpret_cast<const shm::GrantSlot*>(
            client.room(granted->data) + sizeof(shm::GrantHead) + unit * head->stride);
        EXPECT_EQ(slot->number, unit);
    }
    client.release(*granted);
    const auto released = client.wait();
    ASSERT_TRUE(released);
    EXPECT_EQ(released->kind, CompletionKind::kResult);
    EXPECT_EQ(released->reason, Reason::kOk);
    client.claim(7, 0, 2);
    EXPECT_EQ(client.wait()->fence, 2U);
}

TEST(Dibsd, TakesNoPageFaultWhileItServesClaims) {
    if (std::string_view(DIBS_SANITIZERS) != "none") {
        GTEST_SKIP() << "a sanitized broker touches shadow memory of its own";
    }
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    // What it does for the first time may touch a page for the first time, at any moment: a branch
    // that only a late broker takes, say. Serving claims touches none.
    uint64_t faults = 1;
    for (int some = 0; some < 50 && faults != 0; ++some) {
        const uint64_t before = dibsd.page_faults();
        for (uint16_t round = 0; round < 2000; ++round) {
            client.claim(round % 256, 0, 2);
            const auto granted = client.wait();
            ASSERT_EQ(granted->outcome, Outcome::kGranted);
            client.release(*granted);
            ASSERT_TRUE(client.wait());
        }
        faults = dibsd.page_faults() - before;
    }
    EXPECT_EQ(faults, 0U);
}

TEST(Dibsd, GivesTheSlotsOfAKilledClientToWhoWaits) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    Child holder([&](const Child&) {
        RawClient client(dibsd.socket());
        client.claim(1, 0, 2);
        (void)client.wait();
        client.claim(2, 0, 1);  // and one claim that waits
    });
    ASSERT_EQ(holder.marked(), 'e');
    RawClient waiting(dibsd.socket());
    waiting.claim(1, 0, 1);
    holder.kill();
    const auto granted = waiting.wait();
    ASSERT_TRUE(granted);
    EXPECT_EQ(granted->outcome, Outcome::kGranted);
}

TEST(Dibsd, CountsTheLastDoneOfAWorkerThatDiedWithoutRinging) {
    const Folder folder;
    const Dibsd dibsd(folder, std::string(kWorker) + kPatient);
    RawClient client(dibsd.socket());
    Child worker([&](const Child& self) {
        RawClient raw(dibsd.socket());
        const auto slot = raw.announce(0, true);
        self.mark('a');
        const auto assigned = raw.wait();
        raw.worker_word(Op::kConfirm, slot->id, assigned->fence);
        (void)raw.wait();
        shm::Submission done;
        done.op = Op::kDone;
        done.id = slot->id;
        done.fence = assigned->fence;
        raw.submit_silently(done);
    });
    ASSERT_EQ(worker.marked(), 'a');
    client.claim(3);
    ASSERT_EQ(client.wait()->outcome, Outcome::kGranted);
    ASSERT_EQ(worker.marked(), 'e');
    worker.kill();
    const uint64_t event = client.wait_event(3);
    EXPECT_EQ(event & 0xff, shm::LeaseEvent::kEnded);
    EXPECT_EQ(-static_cast<int>(event >> 8 & 0xffff), static_cast<int>(Reason::kDone));
}

TEST(Dibsd, EndsTheLeaseOfAWorkerThatDies) {
    const Folder folder;
    const Dibsd dibsd(folder, std::string(kWorker) + kPatient);
    RawClient client(dibsd.socket());
    Child worker([&](const Child& self) {
        RawClient raw(dibsd.socket());
        const auto slot = raw.announce(0, true);
        self.mark('a');
        const auto assigned = raw.wait();
        raw.worker_word(Op::kConfirm, slot->id, assigned->fence);
        (void)raw.wait();
    });
    ASSERT_EQ(worker.marked(), 'a');
    client.claim(3);
    ASSERT_EQ(client.wait()->outcome, Outcome::kGranted);
    ASSERT_EQ(worker.marked(), 'e');
    worker.kill();
    EXPECT_EQ(-static_cast<int>(client.wait_event(3) >> 8 & 0xffff),
              static_cast<int>(Reason::kWorkerLost));
}

TEST(Dibsd, LetsAClaimWaitAgainWhenItsWorkerNeverAnswers) {
    const Folder folder;
    const Dibsd dibsd(folder, std::string(kWorker) + "\"50ms\"\n");
    RawClient silent(dibsd.socket());
    RawClient client(dibsd.socket());
    const auto first = silent.announce(0, true);
    ASSERT_EQ(first->kind, CompletionKind::kSlot);
    client.claim(1);
    ASSERT_EQ(silent.wait()->kind, CompletionKind::kAssign);
    // Nothing is said, until the reservation's time is over.
    client.await_pool(0, [](const auto& pool) { return pool.unknown == 1 && pool.queued == 1; });
    // Whoever answers has all the time that it needs.
    (void)folder.write("dibsd.toml",
                       std::string(kWorker) + kPatient +
                           "[[pool]]\nname = \"read\"\nkind = \"counted\"\nslots = 1\n");
    dibsd.signal(SIGHUP);
    client.await_pool(1, [](const auto& pool) { return pool.idle == 1; });
    RawClient worker(dibsd.socket());
    const auto second = worker.announce(0, true);
    const auto assigned = worker.wait();
    ASSERT_EQ(assigned->kind, CompletionKind::kAssign);
    worker.await_pool(0, [](const auto& pool) { return pool.unknown == 1 && pool.reserved == 1; });
    worker.worker_word(Op::kConfirm, second->id, assigned->fence);
    EXPECT_EQ(client.wait()->outcome, Outcome::kGranted);
    client.await_pool(0, [](const auto& pool) { return pool.unknown == 1 && pool.leased == 1; });
}

TEST(Dibsd, LetsAClaimWaitAgainWhenItsWorkerDies) {
    const Folder folder;
    const Dibsd dibsd(folder,
                      "[[pool]]\nname = \"web\"\nkind = \"worker\"\npayload_max = "
                      "256\nreservation_ttl = \"1h\"\n");
    RawClient client(dibsd.socket());
    Child dying([&](const Child& self) {
        RawClient raw(dibsd.socket());
        (void)raw.announce(0, true);
        self.mark('a');
        (void)raw.wait();  // assigned
    });
    ASSERT_EQ(dying.marked(), 'a');
    client.claim(1);
    ASSERT_EQ(dying.marked(), 'e');
    dying.kill();
    RawClient worker(dibsd.socket());
    const auto slot = worker.announce(0, true);
    const auto assigned = worker.wait();
    ASSERT_EQ(assigned->kind, CompletionKind::kAssign);
    worker.worker_word(Op::kConfirm, slot->id, assigned->fence);
    EXPECT_EQ(client.wait()->outcome, Outcome::kGranted);
    client.await_pool(0, [](const auto& pool) { return pool.slots == 1; });
}

TEST(Dibsd, CarriesPayloadToTheWorkerAndItsAnswerBack) {
    const Folder folder;
    const Dibsd dibsd(folder, std::string(kWorker) + kPatient);
    RawClient worker(dibsd.socket());
    RawClient client(dibsd.socket());
    const auto slot = worker.announce(0, true);
    client.claim(4);
    const auto assigned = worker.wait();
    EXPECT_EQ(assigned->user_data, 77U);
    EXPECT_EQ(assigned->holder, 0U);  // bytes of payload
    std::memcpy(worker.payload() + 128, "port=80", 7);
    shm::Submission confirm;
    confirm.op = Op::kConfirm;
    confirm.id = slot->id;
    confirm.fence = assigned->fence;
    confirm.payload_offset = 128;
    confirm.payload_size = 7;
    worker.submit(confirm);
    const auto granted = client.wait();
    const auto* head = reinterpret_cast<const shm::GrantHead*>(client.room(granted->data));
    const auto* unit = reinterpret_cast<const shm::GrantSlot*>(head + 1);
    ASSERT_EQ(unit->answer_size, 7U);
    EXPECT_EQ(std::memcmp(reinterpret_cast<const char*>(unit) + head->answer_place, "port=80", 7),
              0);
}

TEST(Dibsd, EndsOnlyTheSessionThatReadsNoCompletions) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    shm::Hello small;
    small.submission_entries = 8;
    small.completion_entries = 16;
    RawClient deaf(dibsd.socket(), small);
    ASSERT_TRUE(deaf.attached());
    shm::Submission nothing;
    nothing.op = Op::kNop;
    for (uint64_t i = 0; i < 17; ++i) {
        deaf.submit(nothing);
        // Lines may be written again once they have been taken; at the 17th the session ends.
        while (deaf.down().submission_consumed.load() <= i &&
               deaf.down().session_state.load() == 1) {
            sched_yield();
        }
    }
    EXPECT_EQ(deaf.wait_end(), Reason::kLimit);
    RawClient other(dibsd.socket());
    other.claim(1);
    EXPECT_EQ(other.wait()->outcome, Outcome::kGranted);
}

// What it holds comes back with its end: nobody waits for it to listen again.
TEST(Dibsd, GivesTheOnlySlotOfASessionThatReadsNoCompletionsToWhoeverWaits) {
    const Folder folder;
    const Dibsd dibsd(folder, "[[pool]]\nname = \"one\"\nkind = \"counted\"\nslots = 1\n");
    shm::Hello small;
    small.submission_entries = 8;
    small.completion_entries = 16;
    RawClient deaf(dibsd.socket(), small);
    RawClient waits(dibsd.socket());
    ASSERT_TRUE(deaf.attached());
    ASSERT_TRUE(waits.attached());
    deaf.claim(1);
    deaf.await_pool(0, [](const auto& pool) { return pool.leased == 1; });
    waits.claim(2);
    waits.await_pool(0, [](const auto& pool) { return pool.queued == 1; });
    shm::Submission nothing;
    nothing.op = Op::kNop;
    // The grant was the first completion; the ring holds fifteen more.
    for (uint64_t i = 1; i < 17; ++i) {
        deaf.submit(nothing);
        while (deaf.down().submission_consumed.load() <= i &&
               deaf.down().session_state.load() == 1) {
            sched_yield();
        }
        if (i == 15) {
            EXPECT_EQ(deaf.down().session_state.load(), 1U);
        }
    }
    EXPECT_EQ(deaf.wait_end(), Reason::kLimit);
    const auto granted = waits.wait();
    ASSERT_TRUE(granted);
    EXPECT_EQ(granted->outcome, Outcome::kGranted);
    EXPECT_EQ(granted->tag, 2);
    EXPECT_EQ(granted->fence, 2U);
    waits.release(*granted);
    EXPECT_EQ(waits.wait()->reason, Reason::kOk);
    waits.await_pool(0, [](const auto& pool) { return pool.idle == 1 && pool.queued == 0; });
}

TEST(Dibsd, EndsASessionThatSkipsASequence) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.lines()[0].sequence.store(2);
    client.ring();
    EXPECT_EQ(client.wait_end(), Reason::kMalformed);
}

TEST(Dibsd, EndsASessionWhoseTailAnnouncesALineThatIsNotThere) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.up().submission_tail.store(1);
    client.ring();
    EXPECT_EQ(client.wait_end(), Reason::kMalformed);
}

TEST(Dibsd, EndsASessionThatSaysClose) {
    const Folder folder;
    const Dibsd dibsd(folder, kCounted);
    RawClient holder(dibsd.socket());
    RawClient waiting(dibsd.socket());
    holder.claim(1, 0, 2);
    ASSERT_EQ(holder.wait()->outcome, Outcome::kGranted);
    waiting.claim(1);
    shm::Submission close;
    close.op = Op::kClose;
    holder.submit(close);
    EXPECT_EQ(holder.wait_end(), Reason::kOk);
    EXPECT_EQ(waiting.wait()->outcome, Outcome::kGranted);
}

TEST(Dibsd, DoesNothingWhileAHundredSessionsAreSilent) {
    const Folder folder;
    // Leases that may be parked are looked at once a second.
    const Dibsd dibsd(folder, std::string(kCounted) + "quantum = \"0s\"\n");
    std::vector<std::unique_ptr<RawClient>> sessions;
    for (int i = 0; i < 100; ++i) {
        sessions.push_back(std::make_unique<RawClient>(dibsd.socket()));
        ASSERT_TRUE(sessions.back()->attached());
        sessions.back()->claim(1, 0, 1, 0);
        ASSERT_TRUE(sessions.back()->wait());
    }
    // It is at rest when its threads sleep, and have not been awake from one look to the next.
    uint64_t before = 0;
    for (int same = 0; same < 20;) {
        struct timespec moment = {0, 10'000'000};
        (void)pselect(0, nullptr, nullptr, nullptr, &moment, nullptr);
        const uint64_t now = dibsd.voluntary_switches();
        same = now == before && is_asleep(dibsd.pid()) ? same + 1 : 0;
        before = now;
    }
    struct timespec second = {1, 0};
    (void)pselect(0, nullptr, nullptr, nullptr, &second, nullptr);
    EXPECT_EQ(dibsd.voluntary_switches(), before);
    EXPECT_EQ(sessions[0]->board().net_found_work.load(), 0U);
}

}  // namespace
}  // namespace dibs::test
