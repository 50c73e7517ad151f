// tests/process/keeper_test.cpp -- who dies, and what goes on: keeper and broker as real processes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <vector>

#include "broker/segments/mapping.hpp"
#include "broker/turn/time_slice.hpp"
#include "shm/memfd.hpp"
#include "tests/process/child.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/proc_text.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/replaceable_dibsd.hpp"
#include "tests/process/tool.hpp"

namespace dibs::test {
namespace {

using shm::CompletionKind;
using shm::Op;
using shm::Outcome;
using shm::Reason;

const char* const kWorkerPool =
    "[[pool]]\nname = \"web\"\nkind = \"worker\"\npayload_max = 256\nanswer_max = 64\n"
    "reservation_ttl = \"1h\"\n";

TEST(Keeper, SaysThatItsBrokerIsReady) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    EXPECT_EQ(dibsd.ready_line(), "dibsd: ready on " + folder.path() + "/dibs.sock");
    EXPECT_NE(dibsd.broker(), dibsd.keeper());
}

// Those that serve, whoever has started them, and the one that will.
TEST(Keeper, RunsWithItsBrokersBeforeWhoeverHasLongerSlices) {
    const auto own = time_slice_ns(0);
    if (!own || *own == 0) GTEST_SKIP() << "the kernel has no slice of a process's own (6.12 has)";
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    const pid_t keeper = dibsd.keeper();
    for (const pid_t pid : {keeper, dibsd.broker(), dibsd.standby()})
        EXPECT_EQ(time_slice_ns(pid), kShortSliceNs);
    kill_and_await(keeper, SIGKILL);
    const pid_t next = dibsd.keeper(keeper);
    for (const pid_t pid : {next, dibsd.standby()})
        EXPECT_EQ(time_slice_ns(pid), kShortSliceNs);
}

TEST(Keeper, EndsWithItsBrokerWhenThatStopsInOrder) {
    const Folder folder;
    KeptDibsd dibsd(folder, kCounted);
    const RawClient client(dibsd.socket());
    kill(dibsd.keeper(), SIGTERM);
    EXPECT_EQ(dibsd.wait(), 0);
    EXPECT_FALSE(connect_to(dibsd.socket()).valid());
}

TEST(Keeper, EndsWithTheExitCodeOfABrokerThatCannotBegin) {
    const Folder folder;
    const std::string bad = folder.write("bad.toml", "nonsense = 1\n");
    EXPECT_EQ(run_dibsd({"--config", bad, "--socket", folder.path() + "/s"}).exit_code, 2);
}

TEST(Takeover, KeepsLeasesAndWaitingClaims) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient holder(dibsd.socket());
    RawClient waiting(dibsd.socket());
    holder.claim(1, 0, 2);
    const auto granted = holder.wait();
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    waiting.claim(1);
    waiting.claim(2, 0, 1, 0);  // its answer says that the first one is in the backlog
    ASSERT_EQ(waiting.wait()->reason, Reason::kBusy);
    dibsd.kill_broker();
    holder.release(*granted);
    const auto next = waiting.wait();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->outcome, Outcome::kGranted);
    EXPECT_EQ(next->tag, 1);
    EXPECT_EQ(next->fence, 2U);
    EXPECT_EQ(holder.wait()->reason, Reason::kOk);
    EXPECT_EQ(holder.board().epoch.load(), 2U);
    EXPECT_EQ(holder.board().net_found_work.load(), 0U);
}

// Nobody else knows that the broker has died.
TEST(Takeover, WaitsForAKeeperThatIsStopped) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient holder(dibsd.socket());
    holder.claim(1, 0, 2);
    const auto granted = holder.wait();
    const pid_t keeper = dibsd.keeper();
    kill(keeper, SIGSTOP);
    holder.claim(2, 0, 1, 0);
    EXPECT_EQ(holder.wait()->reason, Reason::kBusy);  // who is attached is served
    dibsd.kill_broker();
    holder.release(*granted);
    kill(keeper, SIGCONT);
    EXPECT_EQ(holder.wait()->reason, Reason::kOk);
    EXPECT_EQ(holder.board().epoch.load(), 2U);
}

TEST(Takeover, KeepsAWorkerAndItsAssignment) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kWorkerPool);
    RawClient worker(dibsd.socket());
    RawClient client(dibsd.socket());
    const auto slot = worker.announce(0, true);
    client.claim(4);
    const auto assigned = worker.wait();
    ASSERT_EQ(assigned->kind, CompletionKind::kAssign);
    dibsd.kill_broker();
    std::memcpy(worker.payload(), "port=80", 7);
    shm::Submission confirm;
    confirm.op = Op::kConfirm;
    confirm.id = slot->id;
    confirm.fence = assigned->fence;
    confirm.payload_size = 7;
    worker.submit(confirm);
    const auto granted = client.wait();
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    const auto* head = reinterpret_cast<const shm::GrantHead*>(client.room(granted->data));
    const auto* unit = reinterpret_cast<const shm::GrantSlot*>(head + 1);
    ASSERT_EQ(unit->answer_size, 7U);
    EXPECT_EQ(std::memcmp(reinterpret_cast<const char*>(unit) + head->answer_place, "port=80", 7),
              0);
}

TEST(Takeover, GivesBackWhatWasHeldByAClientThatDiedMeanwhile) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient waiting(dibsd.socket());
    Child holder([&](const Child&) {
        RawClient client(dibsd.socket());
        client.claim(1, 0, 2);
        (void)client.wait();
    });
    ASSERT_EQ(holder.marked(), 'e');
    waiting.claim(1);
    const pid_t keeper = dibsd.keeper();
    kill(keeper, SIGSTOP);  // so that nobody takes over before both are dead
    dibsd.kill_broker();
    holder.kill();
    kill(keeper, SIGCONT);
    EXPECT_EQ(waiting.wait()->outcome, Outcome::kGranted);
}

TEST(Takeover, ExpiresNothingWhileNobodyServes) {
    const Folder folder;
    const ReplaceableDibsd program(folder);
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    shm::Submission claim;
    claim.op = Op::kClaim;
    claim.units = 1;
    claim.id = shm::kNever;
    claim.fence = 1'500'000'000;  // its lease's interval
    client.submit(claim);
    const auto granted = client.wait();
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    // The next one begins when it is told to: its program has been replaced.
    const std::string gate = folder.path() + "/gate";
    ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
    ASSERT_EQ(rename(program.path().c_str(), (folder.path() + "/real").c_str()), 0);
    (void)folder.write("dibsd.new",
                       "#!/bin/bash\nread -r go < " + gate + "\nexec -a dibsd " + folder.path() +
                           "/real \"$@\"\n");
    ASSERT_EQ(chmod((folder.path() + "/dibsd.new").c_str(), 0700), 0);
    ASSERT_EQ(rename((folder.path() + "/dibsd.new").c_str(), program.path().c_str()), 0);
    dibsd.kill_broker();
    // Longer than the lease lives while somebody serves.
    const shm::Descriptor timer(timerfd_create(CLOCK_MONOTONIC, 0));
    const struct itimerspec later = {{}, {2, 0}};
    timerfd_settime(timer.get(), 0, &later, nullptr);
    uint64_t rings = 0;
    ASSERT_EQ(read(timer.get(), &rings, sizeof(rings)), 8);
    std::ofstream(gate) << "go\n";
    client.release(*granted);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
}

TEST(Takeover, FollowsAFurtherOne) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    for (uint16_t death = 1; death <= 5; ++death) {
        client.claim(1, 0, 2);
        const auto granted = client.wait();
        ASSERT_EQ(granted->outcome, Outcome::kGranted);
        EXPECT_EQ(granted->fence, death);
        dibsd.kill_broker();
        client.release(*granted);
        ASSERT_EQ(client.wait()->reason, Reason::kOk);
    }
    EXPECT_EQ(client.board().epoch.load(), 6U);
}

TEST(Takeover, LetsNewClientsIn) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    const pid_t first = dibsd.broker();
    dibsd.kill_broker();
    RawClient client(dibsd.socket());  // waits in the queue of the socket that is kept
    ASSERT_TRUE(client.attached());
    EXPECT_EQ(client.welcome().epoch, 2U);
    EXPECT_NE(dibsd.broker(), first);
}

TEST(Takeover, GoesOnWithItsPoolsWhenTheConfigurationIsWrongByNow) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    (void)folder.write("dibsd.toml", "nonsense = 1\n");
    dibsd.kill_broker();
    client.claim(1, 0, 2);
    EXPECT_EQ(client.wait()->outcome, Outcome::kGranted);
}

TEST(Takeover, GoesOnDraining) {
    const Folder folder;
    KeptDibsd dibsd(folder, kCounted);
    RawClient holder(dibsd.socket());
    holder.claim(1);
    const auto granted = holder.wait();
    holder.claim(2, 0, 2);
    kill(dibsd.keeper(), SIGTERM);
    ASSERT_EQ(holder.wait()->reason, Reason::kDraining);
    dibsd.kill_broker();
    await_epoch(holder, 2);
    EXPECT_EQ(RawClient(dibsd.socket()).farewell().code, shm::FarewellCode::kDraining);
    holder.release(*granted);
    EXPECT_EQ(dibsd.wait(), 0);
    EXPECT_EQ(holder.wait_end(), Reason::kDraining);
}

TEST(KeeperDeath, LeavesTheBrokerServingAndIsMadeGood) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    const pid_t broker = dibsd.broker();
    for (uint16_t death = 1; death <= 3; ++death) {
        const pid_t keeper = dibsd.keeper();
        kill_and_await(keeper, SIGKILL);
        client.claim(1, 0, 2);
        const auto granted = client.wait();
        ASSERT_EQ(granted->fence, death);
        client.release(*granted);
        ASSERT_EQ(client.wait()->reason, Reason::kOk);
        EXPECT_NE(dibsd.keeper(keeper), keeper);
    }
    EXPECT_EQ(dibsd.broker(), broker);
    EXPECT_EQ(client.board().epoch.load(), 1U);
    EXPECT_TRUE(RawClient(dibsd.socket()).attached());
}

// The new keeper holds everything: the next broker can do without the one that made it.
TEST(KeeperDeath, IsFollowedByTheDeathOfTheBroker) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1, 0, 2);
    const auto granted = client.wait();
    const pid_t first = dibsd.keeper();
    kill_and_await(first, SIGKILL);
    // A session that is welcome is one that the new keeper has acknowledged, and those before it.
    const RawClient later(dibsd.socket());
    ASSERT_TRUE(later.attached());
    dibsd.kill_broker();
    client.release(*granted);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
    EXPECT_EQ(client.board().epoch.load(), 2U);
}

TEST(KeeperDeath, TogetherWithTheBrokersEndsEverySession) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    const pid_t keeper = dibsd.keeper();
    const pid_t broker = dibsd.broker();
    kill(keeper, SIGSTOP);
    kill_and_await(broker, SIGKILL);
    kill_and_await(keeper, SIGKILL);
    struct pollfd hang_up = {client.socket(), POLLRDHUP, 0};
    EXPECT_EQ(poll(&hang_up, 1, -1), 1);
    EXPECT_NE(hang_up.revents & (POLLHUP | POLLRDHUP), 0);
}

// Whether the broker's timer runs: it is awake.
bool watched(pid_t broker) {
    std::error_code gone;
    std::filesystem::directory_iterator entry("/proc/" + std::to_string(broker) + "/fdinfo", gone);
    for (; !gone && entry != std::filesystem::directory_iterator(); entry.increment(gone)) {
        std::ifstream file(entry->path());
        for (std::string line; std::getline(file, line);) {
            if (line.rfind("it_value:", 0) == 0) return line != "it_value: (0, 0)";
        }
    }
    return false;
}

TEST(HangWatch, KillsABrokerWhoseTurnDoesNotEnd) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    const pid_t first = dibsd.broker();
    // Stopped while it is awake: claims keep it so, and the timer says whether it was.
    for (;;) {
        client.claim(1, 0, 1);
        kill(first, SIGSTOP);
        // Whoever was stopped for too long, awake, has been killed before anybody could look.
        if (!is_stopped(first) || watched(first) || proc_state(first) != 'T') break;
        kill(first, SIGCONT);
        client.release(*client.wait());
        ASSERT_EQ(client.wait()->reason, Reason::kOk);
    }
    const auto granted = client.wait();  // by the next one, or by the first one just before
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    client.release(*granted);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
    EXPECT_NE(dibsd.broker(first), first);
    EXPECT_EQ(client.board().epoch.load(), 2U);
}

TEST(HangWatch, IsOffWhileTheBrokerSleeps) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1, 0, 2);  // of a lease that may be parked there is a timer
    ASSERT_EQ(client.wait()->outcome, Outcome::kGranted);
    while (watched(dibsd.broker()))
        sched_yield();
}

TEST(FailedState, IsPutAsideAndEverybodyIsTold) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1, 0, 2);
    const auto granted = client.wait();
    ASSERT_EQ(granted->outcome, Outcome::kGranted);
    const pid_t keeper = dibsd.keeper();
    const shm::Descriptor state = open_descriptor(keeper, "/memfd:dibs-state");
    ASSERT_TRUE(state.valid());
    kill(keeper, SIGSTOP);
    dibsd.kill_broker();
    {
        Mapping mapping(state.get(), shm::size_of(state.get()));
        const auto place = mapping.at<shm::StateHead>(0)->table[size_t{1}];
        ++mapping.at<shm::PoolRow>(place.offset)->leased;  // one slot more than there are
    }
    kill(keeper, SIGCONT);
    EXPECT_EQ(client.wait_end(), Reason::kStateLost);
    RawClient next(dibsd.socket());
    EXPECT_EQ(next.welcome().epoch, 2U);
    next.claim(1, 0, 2);
    const auto again = next.wait();
    EXPECT_EQ(again->outcome, Outcome::kGranted);
    EXPECT_GT(again->fence, granted->fence);
    EXPECT_EQ(std::filesystem::file_size(folder.path() + "/failed-1.state"),
              shm::size_of(state.get()));
}

// What is said in its place is what everybody has seen: the BOARD.
TEST(FailedState, WithoutAHeadIsFollowedByALaterEpoch) {
    const Folder folder;
    const std::string earlier = folder.write("failed-2.state", "an earlier service's");
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    dibsd.kill_broker();
    await_epoch(client, 2);
    const pid_t keeper = dibsd.keeper();
    const shm::Descriptor state = open_descriptor(keeper, "/memfd:dibs-state");
    ASSERT_TRUE(state.valid());
    kill(keeper, SIGSTOP);
    dibsd.kill_broker();
    {
        Mapping mapping(state.get(), shm::size_of(state.get()));
        std::memset(mapping.bytes().data(), 0, sizeof(shm::StateHead));
    }
    kill(keeper, SIGCONT);
    EXPECT_EQ(client.wait_end(), Reason::kStateLost);
    RawClient next(dibsd.socket());
    EXPECT_EQ(next.welcome().epoch, 3U);
    next.claim(1);
    EXPECT_GT(next.wait()->fence, uint64_t{1} << 48U);
    EXPECT_TRUE(std::filesystem::exists(folder.path() + "/failed-2.2.state"));
    EXPECT_EQ(std::filesystem::file_size(earlier), 20U);
}

TEST(Fsck, SaysWhatIsWrongWithAStateThatWasLeftBehind) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    const shm::Descriptor state = open_descriptor(dibsd.keeper(), "/memfd:dibs-state");
    Mapping mapping(state.get(), shm::size_of(state.get()));
    const std::string path = folder.path() + "/copy.state";
    const auto save = [&] {
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(mapping.bytes().data()),
                   static_cast<std::streamsize>(mapping.bytes().size()));
    };
    save();
    Tool sound("", {"fsck", path});
    EXPECT_EQ(sound.wait(), 0);
    EXPECT_EQ(sound.line().rfind(path + ": sound; epoch 1, ", 0), 0U);

    const auto place = mapping.at<shm::StateHead>(0)->table[size_t{1}];
    auto* pool = mapping.at<shm::PoolRow>(place.offset);
    ++pool->leased;
    save();
    --pool->leased;
    Tool wrong("", {"fsck", path});
    EXPECT_EQ(wrong.wait(), 1);
    EXPECT_NE(wrong.rest().find("leased"), std::string::npos);

    const auto leases =
        mapping.at<shm::StateHead>(0)->table[static_cast<size_t>(shm::Table::kLeases)];
    auto* lease = mapping.at<shm::LeaseRow>(leases.offset);
    lease->state = shm::LeaseState::kLive;  // of a session that cannot be
    lease->session = 0x7fffffff;
    save();
    lease->state = shm::LeaseState::kFree;
    lease->session = 0;
    Tool worse("", {"fsck", path});
    EXPECT_EQ(worse.wait(), 1);
    EXPECT_NE(worse.rest().find("leaves its tables"), std::string::npos);
}

// What kills a broker before it can say what is wrong does so only three times.
TEST(FailedState, IsNotLookedIntoForEver) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1);
    ASSERT_EQ(client.wait()->outcome, Outcome::kGranted);
    const pid_t keeper = dibsd.keeper();
    const shm::Descriptor state = open_descriptor(keeper, "/memfd:dibs-state");
    kill(keeper, SIGSTOP);
    dibsd.kill_broker();
    {
        Mapping mapping(state.get(), shm::size_of(state.get()));
        const auto& head = *mapping.at<shm::StateHead>(0);
        const auto place = head.table[static_cast<size_t>(shm::Table::kLeases)];
        for (uint32_t row = 0; row < place.rows; ++row)  // of a session that cannot be
            mapping.at<shm::LeaseRow>(place.offset)[row].session = 0x7fffffff;
        mapping.at<shm::LeaseRow>(place.offset)->state = shm::LeaseState::kLive;
    }
    kill(keeper, SIGCONT);
    EXPECT_EQ(client.wait_end(),
              Reason::kStateLost);  // before the file is written: a disk may take long
    EXPECT_TRUE(RawClient(dibsd.socket()).attached());
    EXPECT_TRUE(std::filesystem::exists(folder.path() + "/failed-1.state"));
}

// Twenty sessions that come and go.
void come_and_go(const std::string& socket) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 20; ++i)
        clients.push_back(std::make_unique<RawClient>(socket));
    for (auto& client : clients) {
        shm::Submission close;
        close.op = Op::kClose;
        client->submit(close);
        (void)client->wait_end();
    }
}

TEST(Descriptors, OfKeeperAndBrokerComeBackToWhatTheyWere) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    (void)dibsd.standby();  // the keeper has two for it
    const size_t of_keeper = count_descriptors(dibsd.keeper());
    const size_t of_broker = count_descriptors(dibsd.broker());
    come_and_go(dibsd.socket());
    dibsd.kill_broker();  // which may not have told of the last ends
    come_and_go(dibsd.socket());
    // The second broker holds what the first one did, and no pidfd less: there is a keeper.
    const pid_t second = dibsd.broker();
    while (count_descriptors(second) > of_broker || count_descriptors(dibsd.keeper()) > of_keeper)
        sched_yield();
    EXPECT_EQ(dibsd.broker(), second);
}

}  // namespace
}  // namespace dibs::test
