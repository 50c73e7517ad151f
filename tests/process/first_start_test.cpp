// tests/process/first_start_test.cpp -- a broker that dies in the first start of all, or of a STATE
// that had to be put aside: its successor begins where it did, and leaves nothing out.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "broker/segments/mapping.hpp"
#include "shm/memfd.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/proc_text.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/tracer.hpp"

namespace dibs::test {
namespace {

const char* const kShared =
    "[limits]\nsessions = 8\nslots = 16\nclaims = 64\nleases = 64\naccounts = 8\n"
    "arena = \"64KiB\"\n"
    "[[account]]\nname = \"batch\"\nrate = 3\nbalance = 60\n"
    "[[account]]\nname = \"web\"\nrate = 2\nlabel_limits = { gpu = 4 }\n"
    "[[pool]]\nname = \"gpu\"\nkind = \"counted\"\nslots = 2\norder = \"account\"\n";

using Names = std::vector<std::string>;

// Of the accounts that the file configures, in the STATE that this broker serves from.
Names configured_accounts(const KeptDibsd& dibsd) {
    const shm::Descriptor state = open_descriptor(dibsd.keeper(), "/memfd:dibs-state");
    const Mapping mapping(state.get(), shm::size_of(state.get()));
    const auto place =
        mapping.at<shm::StateHead>(0)->table[static_cast<size_t>(shm::Table::kAccounts)];
    constexpr auto kBoth = uint8_t{shm::AccountFlag::kConfigured | shm::AccountFlag::kOfFile};
    Names names;
    for (uint32_t row = 0; row < place.rows; ++row) {
        const auto& account = mapping.at<shm::AccountRow>(place.offset)[row];
        if (account.state == 0 || (account.flags & kBoth) != kBoth) continue;
        names.emplace_back(account.name, account.name_size);
    }
    return names;
}

// Nobody can serve from it any more.
void spoil(const KeptDibsd& dibsd) {
    const shm::Descriptor state = open_descriptor(dibsd.keeper(), "/memfd:dibs-state");
    const Mapping mapping(state.get(), shm::size_of(state.get()));
    const auto place =
        mapping.at<shm::StateHead>(0)->table[static_cast<size_t>(shm::Table::kPools)];
    ++mapping.at<shm::PoolRow>(place.offset)->leased;  // one slot more than there are
}

// Begins a dibsd whose first broker is killed before the `behind`th system call behind the one that
// makes its STATE. False: it would serve with that call. Nothing: it may not be traced.
std::optional<bool> kill_in_first_start(KeptDibsd& dibsd, uint64_t behind) {
    std::optional<Tracer> keeper = Tracer::of_child(dibsd.called());
    if (!keeper) return std::nullopt;
    std::optional<Tracer> broker = keeper->next_child();
    if (!broker) {
        ADD_FAILURE() << "the keeper has started nobody";
        return false;
    }
    keeper->let_go();
    bool made = false;
    bool serves = false;
    for (;;) {
        const std::optional<Call> call = broker->next();
        if (!call) break;
        if (!call->begins) continue;
        made = made || call->number == SYS_memfd_create;
        const auto message = broker->said(*call);
        serves = message && message->word == KeeperWord::kServing;
        if (serves || (made && behind-- == 0)) break;
    }
    broker->kill();
    return !serves;
}

TEST(FirstStart, IsMadeAnewWhereverItsBrokerIsKilled) {
    uint64_t kills = 0;
    for (bool more = true; more; ++kills) {
        SCOPED_TRACE("killed before call " + std::to_string(kills) + " behind its STATE");
        const Folder folder;
        KeptDibsd dibsd(folder, kShared, KeptDibsd::Traced{});
        const std::optional<bool> killed = kill_in_first_start(dibsd, kills);
        if (!killed) GTEST_SKIP() << kMayNotTrace;
        more = *killed;
        dibsd.await_ready();
        ASSERT_EQ(dibsd.ready_line(), "dibsd: ready on " + dibsd.socket());
        ASSERT_EQ(configured_accounts(dibsd), (Names{"batch", "web"}));
        RawClient client(dibsd.socket());
        ASSERT_TRUE(client.attached());
        client.claim(1, 0, 2);
        ASSERT_EQ(client.wait()->outcome, shm::Outcome::kGranted);
    }
    std::printf("killed before %llu system calls\n", static_cast<unsigned long long>(kills));
    EXPECT_GT(kills, 20U);  // pools and accounts need none; segments, listener and keeper do
}

TEST(FirstStart, IsNotMadeAnewWhereSomebodyHasAskedForTheEnd) {
    const Folder folder;
    KeptDibsd dibsd(folder, kShared, KeptDibsd::Traced{});
    auto keeper = Tracer::of_child(dibsd.called());
    if (!keeper) GTEST_SKIP() << kMayNotTrace;
    auto broker = keeper->next_child();
    ASSERT_TRUE(broker);
    keeper->let_go();
    std::optional<Call> call;
    do {
        call = broker->next();
        ASSERT_TRUE(call);
    } while (!call->begins || call->number != SYS_memfd_create);  // its keeper goes on by then
    kill(dibsd.called(), SIGTERM);
    while (!is_pending(broker->tid(), SIGTERM))  // the keeper has heard it
        sched_yield();
    broker->kill();
    EXPECT_EQ(dibsd.wait(), 0);
}

TEST(FirstStart, IsThatOfAStateInThePlaceOfOneThatWasPutAside) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kShared);
    const RawClient client(dibsd.socket());
    const pid_t keeper = dibsd.keeper();
    kill(keeper, SIGSTOP);
    dibsd.kill_broker();
    spoil(dibsd);
    kill(keeper, SIGCONT);
    const RawClient next(dibsd.socket());
    ASSERT_EQ(next.welcome().epoch, 2U);
    EXPECT_EQ(configured_accounts(dibsd), (Names{"batch", "web"}));
}

TEST(FirstStart, IsMadeAnewWhereItsBrokerIsKilledBehindAStateThatWasPutAside) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kShared, {}, {"--no-standby"});
    const RawClient client(dibsd.socket());
    auto keeper = Tracer::of_running(dibsd.keeper());
    if (!keeper) GTEST_SKIP() << kMayNotTrace;
    dibsd.kill_broker();
    spoil(dibsd);
    auto successor = keeper->next_child();
    ASSERT_TRUE(successor);
    keeper->let_go();
    for (bool serves = false; !serves;) {
        const auto call = successor->next();
        ASSERT_TRUE(call);
        const auto message = successor->said(*call);
        serves = message && message->word == KeeperWord::kServing;
    }
    successor->kill();
    const RawClient next(dibsd.socket());
    ASSERT_EQ(next.welcome().epoch, 3U);
    EXPECT_EQ(configured_accounts(dibsd), (Names{"batch", "web"}));
}

// An administrator may have changed them since the file was read.
TEST(FirstStart, IsNoTakeover) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kShared);
    (void)folder.write("dibsd.toml", "[[account]]\nname = \"other\"\nrate = 1\n");
    dibsd.kill_broker();
    const RawClient client(dibsd.socket());
    ASSERT_EQ(client.welcome().epoch, 2U);
    EXPECT_EQ(configured_accounts(dibsd), (Names{"batch", "web"}));
}

}  // namespace
}  // namespace dibs::test
