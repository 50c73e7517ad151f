// tests/process/storm_test.cpp -- clients, workers, broker and keeper are killed at random moments
// under load: nothing is lost, nothing doubled, nothing leaked.
//
// DIBS_SEED picks the moments; DIBS_LONG asks for more of them. The clients speak the protocol by
// hand and have no safety net: an answer or a wake-up that is lost hangs the test.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/segments/mapping.hpp"
#include "shm/memfd.hpp"
#include "tests/process/child.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/storm_page.hpp"
#include "tests/repeats.hpp"

namespace dibs::test {
namespace {

using shm::CompletionKind;
using shm::Op;
using shm::Outcome;

constexpr uint16_t kTokens = 0;
constexpr uint16_t kWeb = 1;
constexpr uint32_t kClients = 5;
constexpr uint32_t kWorkers = 3;
const char* const kPools =
    "[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 4\n"
    "[[pool]]\nname = \"web\"\nkind = \"worker\"\npayload_max = 64\nattributes_max = 16\n"
    "reservation_ttl = \"1h\"\n";

// ---- what the children do

void hold_tokens(RawClient& client, const shm::Completion& granted, StormPage& page, bool holds) {
    const auto* head = reinterpret_cast<const shm::GrantHead*>(client.room(granted.data));
    for (uint32_t unit = 0; unit < granted.units; ++unit) {
        const auto* slot = reinterpret_cast<const shm::GrantSlot*>(
            reinterpret_cast<const std::byte*>(head + 1) + size_t{unit} * head->stride);
        if (slot->number >= StormPage::kSlots) {
            page.wrong.fetch_add(1);
        } else if (holds) {
            page.take(slot->number, granted.fence);
        } else {
            page.give_back(slot->number);
        }
    }
}

// One claim: granted, held for a moment, given back. False if the broker answered nonsense.
bool claim_once(RawClient& client, StormPage& page, std::mt19937_64& dice) {
    const uint16_t pool = dice() % 3 == 0 ? kWeb : kTokens;
    const auto tag = static_cast<uint16_t>(dice() % 64);
    client.claim(tag, pool, pool == kWeb ? 1 : static_cast<uint16_t>(1 + dice() % 2));
    const auto granted = client.wait();
    if (!granted || granted->kind != CompletionKind::kClaim ||
        granted->outcome != Outcome::kGranted || granted->tag != tag) {
        return false;
    }
    if (pool == kTokens) hold_tokens(client, *granted, page, true);
    page.grants.fetch_add(1);
    for (uint64_t moments = dice() % 8; moments > 0; --moments)
        sched_yield();
    if (pool == kTokens) hold_tokens(client, *granted, page, false);
    client.release(*granted);
    const auto released = client.wait();
    return released && released->kind == CompletionKind::kResult;
}

void be_client(const std::string& socket, StormPage& page, uint64_t seed, const Child& self) {
    std::mt19937_64 dice(seed);
    RawClient client(socket);
    if (!client.attached()) page.wrong.fetch_add(1);
    self.mark('a');
    while (page.stop.load() == 0) {
        if (claim_once(client, page, dice)) continue;
        page.wrong.fetch_add(1);
        return;
    }
}

// Its one slot is its own: assigned again before it was revoked, it has been granted twice.
void be_worker(const std::string& socket, StormPage& page, const Child& self) {
    RawClient worker(socket);
    const auto slot = worker.announce(kWeb, true);
    if (!slot || slot->kind != CompletionKind::kSlot) page.wrong.fetch_add(1);
    self.mark('a');
    bool busy = false;
    while (const auto told = worker.wait()) {
        if (told->kind == CompletionKind::kAssign) {
            if (busy) page.doubled.fetch_add(1);
            busy = true;
            page.assignments.fetch_add(1);
            worker.worker_word(Op::kConfirm, told->id, told->fence, shm::OpFlag::kQuiet);
        } else if (told->kind == CompletionKind::kRevoke) {
            busy = false;
            worker.worker_word(Op::kReady, told->id, told->fence, shm::OpFlag::kQuiet);
        }
    }
    page.wrong.fetch_add(1);  // its session has ended
}

// ---- the storm

class Storm {
  public:
    Storm(const KeptDibsd& dibsd, StormPage& page, uint64_t seed)
        : dibsd_(dibsd), page_(page), dice_(seed), observer_(dibsd.socket()) {
        for (uint32_t i = 0; i < kClients; ++i)
            clients_.push_back(new_client());
        for (uint32_t i = 0; i < kWorkers; ++i)
            workers_.push_back(new_worker());
    }

    // After some progress, and then at any moment.
    void kill_one(uint32_t what) {
        const uint64_t until = page_.grants.load() + 1 + dice_() % 40;
        while (page_.grants.load() < until && page_.wrong.load() == 0)
            sched_yield();
        std::atomic<uint32_t> moment = 0;
        for (uint64_t end = dice_() % 30000; moment.load() < end;)
            moment.fetch_add(1);
        if (what == 0) return replace(clients_, [&] { return new_client(); });
        if (what == 1) return replace(workers_, [&] { return new_worker(); });
        if (what == 2) return kill_broker();
        kill_keeper();
    }

    void end() {
        page_.stop.store(1);
        for (const auto& client : clients_)
            EXPECT_EQ(client->marked(), 'e');
        clients_.clear();
        workers_.clear();
    }
    [[nodiscard]] RawClient& observer() { return observer_; }

  private:
    using Children = std::vector<std::unique_ptr<Child>>;

    std::unique_ptr<Child> started(std::unique_ptr<Child> child) {
        EXPECT_EQ(child->marked(), 'a');
        return child;
    }
    std::unique_ptr<Child> new_client() {
        const uint64_t seed = dice_();
        return started(std::make_unique<Child>(
            [&](const Child& self) { be_client(dibsd_.socket(), page_, seed, self); }));
    }
    std::unique_ptr<Child> new_worker() {
        return started(std::make_unique<Child>(
            [&](const Child& self) { be_worker(dibsd_.socket(), page_, self); }));
    }
    template <typename New>
    void replace(Children& children, New make) {
        const size_t victim = dice_() % children.size();
        children[victim]->kill();
        children[victim] = make();
    }
    // The next one serves before anybody else may die: keeper and broker at once are too much. And
    // it is done with what was in hand: an entry that was so at two deaths running ends its
    // session.
    void kill_broker() {
        const uint64_t epoch = observer_.board().epoch.load();
        dibsd_.kill_broker();
        while (observer_.board().epoch.load() == epoch)
            sched_yield();
        shm::Submission nothing;  // is heard behind all that
        nothing.op = Op::kNop;
        observer_.submit(nothing);
        ASSERT_TRUE(observer_.wait().has_value());
    }
    // Whoever is welcomed after its death is held by its successor, and so is everybody before.
    void kill_keeper() {
        dibsd_.kill_keeper();
        RawClient later(dibsd_.socket());
        ASSERT_TRUE(later.attached());
        shm::Submission close;
        close.op = Op::kClose;
        later.submit(close);
        (void)later.wait_end();
    }

    const KeptDibsd& dibsd_;
    StormPage& page_;
    std::mt19937_64 dice_;
    RawClient observer_;
    Children clients_;
    Children workers_;
};

uint64_t chosen_seed() {
    const char* given = std::getenv("DIBS_SEED");
    const uint64_t seed =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
    std::printf("DIBS_SEED=%llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    return seed;
}

size_t count_mappings(pid_t pid, const std::string& name) {
    std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        count += line.find(name) != std::string::npos ? 1 : 0;
    return count;
}

// A copy of STATE, looked at through the core itself. The broker is at rest.
std::vector<std::string> violations(const KeptDibsd& dibsd, uint32_t* sessions) {
    const shm::Descriptor state = open_descriptor(dibsd.keeper(), "/memfd:dibs-state");
    const uint64_t size = shm::size_of(state.get());
    const Mapping from(state.get(), size);
    const shm::Descriptor copy = shm::make_memfd("copy", size);
    Mapping to(copy.get(), size);
    std::copy(from.bytes().begin(), from.bytes().end(), to.bytes().begin());
    const core::Core core(to.bytes());
    *sessions = 0;
    for (uint32_t row = 0; row < core.sessions_max(); ++row)
        *sessions += core.session(row).state != shm::SessionState::kFree ? 1 : 0;
    return core.check_all();
}

TEST(Storm, LosesDoublesAndLeaksNothing) {
    const uint64_t seed = chosen_seed();
    const auto deaths = static_cast<uint32_t>(tests::repeats(50, 2500));  // of each kind
    StormPage* page = StormPage::make();
    ASSERT_NE(page, nullptr);
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    const auto descriptors = [&](pid_t pid) { return count_descriptors(pid); };
    (void)dibsd.standby();  // the keeper has two for it
    const size_t of_keeper = descriptors(dibsd.keeper());
    const size_t of_broker = descriptors(dibsd.broker());
    const size_t observed = 6;  // descriptors of the one session that stays
    {
        Storm storm(dibsd, *page, seed);
        std::vector<uint32_t> victims;
        for (uint32_t what = 0; what < 4; ++what)
            victims.insert(victims.end(), deaths, what);
        std::mt19937_64 dice(seed + 1);
        std::shuffle(victims.begin(), victims.end(), dice);
        for (const uint32_t what : victims) {
            storm.kill_one(what);
            ASSERT_EQ(page->wrong.load(), 0U);
        }
        storm.end();
        RawClient& observer = storm.observer();
        observer.await_pool(kTokens, [](const auto& pool) {
            return pool.idle == 4 && pool.leased == 0 && pool.queued == 0;
        });
        observer.await_pool(kWeb, [](const auto& pool) { return pool.slots == 0; });
        while (observer.board().sessions.load() != 1)
            sched_yield();
        // A keeper or broker that others have started has no more than its first one had.
        while (descriptors(dibsd.keeper()) > of_keeper + observed ||
               descriptors(dibsd.broker()) > of_broker + observed) {
            sched_yield();
        }
        EXPECT_EQ(count_mappings(dibsd.broker(), "dibs-up"), 1U);
        EXPECT_EQ(count_mappings(dibsd.broker(), "dibs-down"), 1U);
        uint32_t sessions = 0;
        EXPECT_EQ(violations(dibsd, &sessions), std::vector<std::string>());
        EXPECT_EQ(sessions, 1U);
        EXPECT_EQ(observer.board().epoch.load(), 1U + deaths);
        EXPECT_EQ(observer.board().net_found_work.load(), 0U);
    }
    EXPECT_EQ(page->doubled.load(), 0U);
    EXPECT_EQ(page->backwards.load(), 0U);
    EXPECT_EQ(page->wrong.load(), 0U);
    EXPECT_GT(page->assignments.load(), 0U);
}

}  // namespace
}  // namespace dibs::test
