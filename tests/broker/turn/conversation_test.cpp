// tests/broker/turn/conversation_test.cpp -- sessions that say anything at any time, each client
// and worker at once: what lives is never written over, and every claim has one end.
//
// Each turn reads a handful of operations from everybody, of slots, leases and tags that are known
// and of ones that are long gone. After the turn every row holds, and the room of every lease that
// lives says what the rows say.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "shm/operation.hpp"
#include "tests/broker/bench.hpp"

namespace dibs::test {
namespace {

using shm::CompletionKind;
using shm::Op;
using shm::Outcome;

struct Known {  // of a slot or a lease
    uint64_t id;
    uint64_t fence;
};

// What one of the sessions has heard.
struct Speaker {
    Session* session;
    std::vector<Known> slots;
    std::vector<Known> leases;
    uint64_t claims = 0;
    uint64_t outcomes = 0;
};

class Conversation {
  public:
    explicit Conversation(uint64_t seed) : random_(seed) {
        const std::string_view attributes[] = {{"device=0\0", 9}, {"device=1\0", 9}};
        bench_.pool({.name = "gpu",
                     .slots = 12,
                     .backlog_max = 20,
                     .attributes_max = 16,
                     .interval_max_ns = 5000,
                     .grace_ns = 500,
                     .slot_attributes = attributes});
        for (const bool ready : {false, true}) {
            // Nobody is killed: there is no process behind a session. So each kill fails, and what
            // is held strictly comes back with its release or its session.
            bench_.pool({.name = ready ? "quick" : "web",
                         .kind = shm::PoolKind::kWorker,
                         .payload_max = 128,
                         .answer_max = ready ? 40U : 200U,
                         .attributes_max = 8,
                         .reservation_ttl_ns = 300,
                         .interval_max_ns = 3000,
                         .release_is_ready = ready,
                         .expiry = ready ? shm::ExpiryMode::kLazy : shm::ExpiryMode::kStrict});
        }
        for (int i = 0; i < 4; ++i)
            join();
    }

    void play(int turns) {
        for (int i = 0; i < turns && !testing::Test::HasFailure(); ++i) {
            for (Speaker& speaker : speakers_) {
                for (uint64_t n = below(6); n > 0; --n)
                    say(speaker);
            }
            if (below(200) == 0) leave();
            bench_.now += below(100);
            do {
                bench_.turn();
            } while (somebody_is_unread());  // most of what they say is refused: small bites
            for (Speaker& speaker : speakers_)
                listen(speaker);
            check();
        }
    }

  private:
    [[nodiscard]] bool somebody_is_unread() {
        return std::any_of(speakers_.begin(), speakers_.end(), [this](const Speaker& speaker) {
            return !speaker.session->ending &&
                   speaker.session->consumed < bench_.pushed(*speaker.session);
        });
    }
    uint64_t below(uint64_t bound) { return random_() % bound; }

    void join() { speakers_.push_back({&bench_.open({.down_payload = 32768}), {}, {}}); }

    void leave() {
        Speaker& speaker = speakers_[below(speakers_.size())];
        if (below(2) == 0) {
            bench_.sessions.drain(speaker.session);
        } else {
            bench_.sessions.end(speaker.session, shm::Reason::kOk);
        }
        speakers_.erase(speakers_.begin() + (&speaker - speakers_.data()));
        bench_.turn();
        join();
    }

    Known pick(const std::vector<Known>& known) {
        if (known.empty() || below(20) == 0) return {below(3) << 32 | below(16), below(4)};
        // Mostly one of the last.
        const size_t back = below(std::min<size_t>(known.size(), below(4) == 0 ? 1000 : 4));
        return known[known.size() - 1 - back];
    }

    void say(Speaker& speaker) {
        shm::Submission entry;
        entry.tag = static_cast<uint16_t>(below(8));
        switch (below(13)) {
            case 0:
            case 1:
            case 2:
            case 3:
                entry.op = Op::kClaim;
                entry.pool = static_cast<uint16_t>(below(3));
                entry.units = static_cast<uint16_t>(1 + below(4));
                entry.id = below(3) == 0 ? shm::kNever : below(400);
                entry.fence = below(2) * below(900);
                entry.user_data = 1;
                ++speaker.claims;
                break;
            case 4:
                entry.op = Op::kCancel;
                break;
            case 5:
            case 6:
                entry = of(below(8) == 0 ? Op::kFail : Op::kRelease, pick(speaker.leases));
                break;
            case 7:
                entry = of(Op::kKeepalive, pick(speaker.leases));
                break;
            case 12:
                entry = of(Op::kAdopt, pick(speakers_[below(speakers_.size())].leases));
                entry.tag = static_cast<uint16_t>(below(8));
                break;
            case 8:
                entry.op = Op::kAnnounce;
                entry.pool = static_cast<uint16_t>(1 + below(2));
                entry.flags = below(4) == 0 ? 0 : shm::OpFlag::kThenReady;
                if (speaker.session->slots > 6) entry = of(Op::kReady, pick(speaker.slots));
                break;
            case 9:
            case 10:
                entry = of(below(8) == 0 ? Op::kRefuse : Op::kConfirm, pick(speaker.slots));
                if (entry.op == Op::kConfirm) entry.payload_size = static_cast<uint32_t>(below(40));
                if (entry.op == Op::kRefuse && below(2) == 0) entry.flags = shm::OpFlag::kTryAgain;
                break;
            default:
                entry = of(below(3) == 0    ? Op::kDone
                           : below(20) == 0 ? Op::kWithdraw
                                            : Op::kReady,
                           pick(speaker.slots));
        }
        bench_.push(*speaker.session, entry);
    }
    static shm::Submission of(Op op, const Known& known) { return word(op, known.id, known.fence); }

    void listen(Speaker& speaker) {
        while (const auto told = bench_.next(*speaker.session)) {
            if (told->kind == CompletionKind::kSlot || told->kind == CompletionKind::kAssign) {
                if (told->reason == shm::Reason::kOk)
                    speaker.slots.push_back({told->id, told->fence});
            }
            // Of all results only an adoption's has a room.
            if (told->kind == CompletionKind::kResult && told->id != 0 && told->data != 0 &&
                told->reason == shm::Reason::kOk) {
                speaker.leases.push_back({told->id, told->fence});
            }
            if (told->kind != CompletionKind::kClaim) continue;
            ++speaker.outcomes;
            if (told->outcome == Outcome::kGranted) {
                speaker.leases.push_back({told->id, told->fence});
            }
        }
        if (below(3) != 0) bench_.release_read(*speaker.session);
        const shm::SessionRow& row = bench_.core.session(speaker.session->row);
        if (speaker.session->ending) return;
        EXPECT_EQ(speaker.claims, speaker.outcomes + row.claims);
    }

    void check() {
        EXPECT_EQ(bench_.core.check_all(), std::vector<std::string>{});
        for (uint32_t row = 0; row < bench_.core.leases_max(); ++row) {
            const shm::LeaseRow& lease = bench_.core.lease(row);
            if (lease.state == shm::LeaseState::kFree) continue;
            const Session* session = bench_.sessions.at(lease.session);
            if (session == nullptr || session->ending) continue;
            // A worker that dies takes its slot off a lease whose holder is being killed.
            if (lease.state == shm::LeaseState::kKilling) continue;
            const std::byte* room = session->payload + size_t{lease.room} * shm::kLineSize;
            const auto* head = reinterpret_cast<const shm::GrantHead*>(room);
            ASSERT_EQ(head->units, lease.units) << "lease " << row;
            uint32_t slot = lease.first_slot;
            for (uint32_t unit = 0; unit < lease.units; ++unit) {
                const auto* region = reinterpret_cast<const shm::GrantSlot*>(
                    room + sizeof(shm::GrantHead) + size_t{unit} * head->stride);
                ASSERT_EQ(region->number, bench_.core.slot(slot).number) << "lease " << row;
                ASSERT_LE(region->answer_size, head->stride - head->answer_place);
                slot = bench_.core.slot(slot).holder_next;
            }
        }
    }

    std::mt19937_64 random_;
    Bench bench_;
    std::vector<Speaker> speakers_;
};

TEST(Conversation, LeavesEveryRoomToItsLeaseAndEndsEveryClaimOnce) {
    const char* given = std::getenv("DIBS_SEED");
    const uint64_t first = given != nullptr ? std::stoull(given) : 1;
    const int turns = std::getenv("DIBS_LONG") != nullptr ? 50'000 : 1500;
    for (uint64_t seed = first; seed < first + 4 && !testing::Test::HasFailure(); ++seed) {
        std::printf("seed %llu (DIBS_SEED)\n", static_cast<unsigned long long>(seed));
        Conversation(seed).play(turns);
    }
}

}  // namespace
}  // namespace dibs::test
