// tests/hostile/history_test.cpp -- what good clients live through beside a hostile one of another
// user is what they live through alone: grant for grant, fence for fence.
//
// A worker, a client and the stranger are processes; the stranger may claim and offer in pools of
// its own. The client's rounds are spread over all that the stranger does.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/segments/mapping.hpp"
#include "shm/memfd.hpp"
#include "tests/hostile/stranger.hpp"
#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/user.hpp"

namespace dibs::test {
namespace {

using shm::Op;
using shm::Outcome;

const char* const kPools =
    "socket_mode = \"0666\"\n"
    "[[pool]]\nname = \"theirs\"\nkind = \"counted\"\nslots = 4\n"
    "[[pool]]\nname = \"their-web\"\nkind = \"worker\"\npayload_max = 128\nanswer_max = 16\n"
    "attributes_max = 32\nreservation_ttl = \"1ms\"\n"
    "[[pool]]\nname = \"ours\"\nkind = \"counted\"\nslots = 3\n"
    "[[pool]]\nname = \"our-web\"\nkind = \"worker\"\nreservation_ttl = \"10min\"\n"
    "[[policy]]\nuser = 61002\npools = [\"theirs\", \"their-web\"]\nhandshakes = 1000000\n";

constexpr uint16_t kOurs = 2;
constexpr uint16_t kOurWeb = 3;
constexpr uint64_t kRounds = 500;

uint64_t entries_wanted() {
    if (std::getenv("DIBS_LONG") != nullptr) return 1'000'000'000;
    const char* given = std::getenv("DIBS_ENTRIES");
    return given != nullptr ? std::stoull(given) : 10'000'000;
}

// Of a completion, what must not depend on anybody else: neither times nor numbers that all share.
void note(std::vector<std::string>& history, const RawClient& client, const shm::Completion& end) {
    std::string line = std::to_string(static_cast<int>(end.kind)) + ' ' +
                       std::to_string(static_cast<int>(end.outcome)) + ' ' +
                       std::to_string(static_cast<int>(end.reason)) + " tag " +
                       std::to_string(end.tag) + " units " + std::to_string(end.units);
    if (end.outcome == Outcome::kGranted) {
        line += " fence " + std::to_string(end.fence) + " slots";
        const auto* head = reinterpret_cast<const shm::GrantHead*>(client.room(end.data));
        for (uint32_t unit = 0; unit < head->units; ++unit) {
            const auto* slot = reinterpret_cast<const shm::GrantSlot*>(
                client.room(end.data) + sizeof(shm::GrantHead) + unit * head->stride);
            line += ' ' + std::to_string(slot->number);
        }
    }
    history.push_back(line);
}

// One of everything: a grant of two, one that must wait, one that is cancelled, one of a worker.
void round(RawClient& client, std::vector<std::string>& history) {
    const auto next = [&] {
        const auto end = client.wait();
        if (!end) {
            ADD_FAILURE() << "the session has ended";
            return shm::Completion{};
        }
        note(history, client, *end);
        return *end;
    };
    client.claim(1, kOurs, 2);
    const shm::Completion two = next();
    client.claim(2, kOurs, 2);     // waits for the release
    client.claim(3, kOurs, 3, 0);  // will not wait
    (void)next();
    client.claim(4, kOurs, 1);
    shm::Submission cancel;
    cancel.op = Op::kCancel;
    cancel.tag = 4;
    client.submit(cancel);
    (void)next();
    (void)next();
    client.release(two);
    (void)next();
    const shm::Completion second = next();
    client.release(second);
    (void)next();
    client.claim(5, kOurWeb, 1);
    const shm::Completion web = next();
    client.release(web);
    (void)next();
}

// Confirms what it is asked, and is ready again after each release.
void work(const std::string& socket, const Child& self) {
    RawClient client(socket);
    const auto slot = client.announce(kOurWeb, true);
    self.mark('a');
    while (const auto word = client.wait()) {
        if (word->kind == shm::CompletionKind::kAssign) {
            client.worker_word(Op::kConfirm, slot->id, word->fence, shm::OpFlag::kQuiet);
        } else if (word->kind == shm::CompletionKind::kRevoke) {
            client.worker_word(Op::kReady, slot->id, word->fence, shm::OpFlag::kQuiet);
        }
    }
}

void attack(const std::string& socket,
            uint64_t seed,
            uint64_t wanted,
            std::atomic<uint64_t>* entries) {
    become_user(kBob, kBob);
    Random random(seed);
    const uint64_t some = wanted / 40;
    // A session whose client only goes lives until its process dies: each tour is one, or the
    // user would have all that it may have after some hundred tours.
    while (entries->load() < wanted) {
        const Child tour([&, own = random()](const Child&) {
            Stranger stranger{socket, Random(own), entries};
            stranger.operate(some);
            stranger.scribble();
            stranger.jump();
            stranger.flip();
            stranger.lie();
            stranger.punch();
            stranger.ignore();
            stranger.storm();
        });
        (void)tour.marked();
    }
}

struct Witnessed {
    std::vector<std::string> history;
    uint64_t entries = 0;
};

// Beside a stranger who submits so many entries; 0: there is none.
Witnessed live(uint64_t wanted, uint64_t seed, const std::string& penalty) {
    Witnessed seen;
    const Folder folder;
    open_folder(folder.path());
    const shm::Descriptor state(memfd_create("state", MFD_ALLOW_SEALING));
    Dibsd dibsd(folder, "throttle = \"" + penalty + "\"\n" + kPools, state.get());
    EXPECT_TRUE(dibsd.ready());
    const shm::Descriptor shared = shm::make_memfd("entries", 4096);
    const Mapping page(shared.get(), 4096);
    auto* entries = new (page.bytes().data()) std::atomic<uint64_t>(0);
    const Child worker([&](const Child& self) { work(dibsd.socket(), self); });
    EXPECT_EQ(worker.marked(), 'a');
    std::unique_ptr<Child> stranger;
    if (wanted != 0) {
        stranger = std::make_unique<Child>(
            [&](const Child&) { attack(dibsd.socket(), seed, wanted, entries); });
    }
    RawClient client(dibsd.socket());
    const uint64_t each = wanted / kRounds;
    for (uint64_t i = 0; i < kRounds; ++i) {
        while (entries->load() < i * each)
            sched_yield();
        round(client, seen.history);
    }
    if (stranger) {
        EXPECT_EQ(stranger->marked(), 'e');
    }
    stranger.reset();
    seen.entries = entries->load();
    client.await_pool(0, [](const auto& pool) { return pool.idle == 4 && pool.queued == 0; });
    client.await_pool(1, [](const auto& pool) { return pool.slots == 0 && pool.queued == 0; });
    dibsd.signal(SIGKILL);
    (void)dibsd.wait();
    const Mapping mapping(state.get(), shm::size_of(state.get()));
    EXPECT_EQ(core::Core(mapping.bytes()).check_all(), std::vector<std::string>{});
    return seen;
}

void expect_the_same_beside(uint64_t wanted, const std::string& penalty) {
    const char* given = std::getenv("DIBS_SEED");
    const uint64_t seed = given != nullptr ? std::stoull(given) : 1;
    std::printf("seed %llu (DIBS_SEED)\n", static_cast<unsigned long long>(seed));
    const Witnessed alone = live(0, seed, penalty);
    const Witnessed beside = live(wanted, seed, penalty);
    EXPECT_EQ(alone.history.size(), kRounds * 9);
    EXPECT_EQ(alone.history.front(), "1 1 0 tag 1 units 2 fence 1 slots 0 1");
    EXPECT_GE(beside.entries, wanted);
    EXPECT_EQ(alone.history, beside.history);
}

// A user namespace would not do: the kernel tells the broker the uid outside of it. Without a
// penalty: else the broker would not look at so many entries in hours.
TEST(Hostile, ASessionOfAnotherUserLeavesTheOthersTheirHistories) {
    DIBS_NEEDS_ROOT();
    expect_the_same_beside(entries_wanted(), "0us");
}

TEST(Hostile, SoDoesOneThatSitsOut) {
    DIBS_NEEDS_ROOT();
    expect_the_same_beside(entries_wanted() / 200, "100us");
}

}  // namespace
}  // namespace dibs::test
