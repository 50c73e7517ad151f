// tests/process/keeper_upgrade_test.cpp -- another program lies at dibsd's path, and a broker is to
// begin.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "broker/takeover/keeper_child.hpp"
#include "broker/takeover/keeper_socket.hpp"
#include "shm/memfd.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/replaceable_dibsd.hpp"

namespace dibs::test {
namespace {

using shm::Reason;

TEST(Upgrade, IsATakeoverThatIsAskedFor) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1, 0, 2);
    const auto granted = client.wait();
    const pid_t first = dibsd.broker();
    kill(dibsd.keeper(), SIGUSR2);
    await_epoch(client, 2);
    client.release(*granted);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
    const pid_t second = dibsd.broker(first);
    kill(second, SIGUSR2);
    await_epoch(client, 3);
    EXPECT_NE(dibsd.broker(second), first);
}

// The program that a process is; "(deleted)" behind it where it lies there no more.
std::string program_of(pid_t pid) {
    return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe").string();
}

TEST(Upgrade, ThatCannotGoOnLeavesTheServiceToTheOldProgram) {
    const Folder folder;
    const ReplaceableDibsd program(folder);
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1, 0, 2);
    const auto granted = client.wait();
    ASSERT_TRUE(granted);
    const std::string real = folder.path() + "/real";
    std::filesystem::copy_file(program.path(), real);
    program.replace(folder.write("bad", "#!/bin/sh\nexit 1\n"));
    kill(dibsd.keeper(), SIGUSR2);
    await_epoch(client, 2);
    dibsd.kill_broker();
    await_epoch(client, 3);
    client.release(*granted);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
    const pid_t third = dibsd.broker();
    EXPECT_EQ(program_of(third), program.path() + " (deleted)");
    // One that can is tried when it is asked for.
    program.replace(real);
    kill(dibsd.keeper(), SIGUSR2);
    await_epoch(client, 4);
    EXPECT_EQ(program_of(dibsd.broker(third)), program.path());
}

// Not even one that ends as a broker does that makes way.
TEST(Upgrade, ThatEndsBeforeItServesLeavesTheServiceToTheOldProgramWhateverItsExitCode) {
    const Folder folder;
    const ReplaceableDibsd program(folder);
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1);
    const auto granted = client.wait();
    ASSERT_TRUE(granted);
    uint64_t epoch = 1;
    for (const int code : {0, 1, 2, kExitYielded, kExitUnable, 126}) {
        program.replace(folder.write("bad", "#!/bin/sh\nexit " + std::to_string(code) + "\n"));
        kill(dibsd.keeper(), SIGUSR2);
        await_epoch(client, ++epoch);
        EXPECT_EQ(program_of(dibsd.broker()), program.path() + " (deleted)");
    }
    client.release(*granted);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
}

// And nothing of what it has started is left, whether it hangs or ends.
TEST(Upgrade, ThatHangsIsEndedWithAllThatItHasStarted) {
    const Folder folder;
    const ReplaceableDibsd program(folder);
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1);
    const auto granted = client.wait();
    ASSERT_TRUE(granted);
    const std::string note = folder.path() + "/note";
    uint64_t epoch = 1;
    for (const char* const last : {"exit 1", "wait"}) {
        // Its standard output is the note's: at an end where nobody has it any more.
        program.replace(
            folder.write("bad", "#!/bin/sh\nexec > " + note + "\nsleep 1000 &\n" + last + "\n"));
        ASSERT_EQ(mkfifo(note.c_str(), 0600), 0);
        const shm::Descriptor end(open(note.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        kill(dibsd.keeper(), SIGUSR2);
        await_epoch(client, ++epoch);
        struct pollfd nobody = {end.get(), POLLIN, 0};
        (void)poll(&nobody, 1, -1);
        EXPECT_NE(nobody.revents & POLLHUP, 0);
        std::filesystem::remove(note);
    }
    client.release(*granted);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
}

// Of want of memory, say: each of its brokers is killed before it serves.
TEST(Upgrade, ThatIsKilledLeavesTheServiceToTheOldProgram) {
    const Folder folder;
    const ReplaceableDibsd program(folder);
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1);
    const auto granted = client.wait();
    ASSERT_TRUE(granted);
    program.replace(folder.write("killed", "#!/bin/sh\nkill -9 $$\n"));
    kill(dibsd.keeper(), SIGUSR2);
    await_epoch(client, 2);
    client.release(*granted);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
}

// It knows the path, though what it is itself lies there no more.
TEST(Upgrade, IsFoundByAKeeperThatBeganBehindIt) {
    const Folder folder;
    const ReplaceableDibsd program(folder);
    const KeptDibsd dibsd(folder, std::string("hardening = \"off\"\n") + kCounted);
    RawClient client(dibsd.socket());
    const std::string other = folder.path() + "/other";
    std::filesystem::copy_file(program.path(), other);
    program.replace(other);
    const pid_t first = dibsd.keeper();
    const pid_t broker = dibsd.broker();
    kill_and_await(first, SIGKILL);
    const pid_t second = dibsd.keeper(first);
    EXPECT_TRUE(RawClient(dibsd.socket()).attached());  // it knows its broker by then
    kill(second, SIGUSR2);
    await_epoch(client, 2);
    EXPECT_EQ(program_of(dibsd.broker(broker)), program.path());
}

// A keeper that a restricted broker has started may execute nothing else.
TEST(Upgrade, IsInNobodysWayWhereTheKeeperIsRestricted) {
    const Folder folder;
    const ReplaceableDibsd program(folder);
    const KeptDibsd dibsd(folder, kCounted);
    RawClient client(dibsd.socket());
    client.claim(1);
    const auto granted = client.wait();
    ASSERT_TRUE(granted);
    const pid_t first = dibsd.keeper();
    kill_and_await(first, SIGKILL);
    ASSERT_NE(dibsd.keeper(first), first);
    const std::string other = folder.path() + "/other";
    std::filesystem::copy_file(program.path(), other);
    program.replace(other);
    EXPECT_TRUE(RawClient(dibsd.socket()).attached());  // the keeper holds what it is to
    dibsd.kill_broker();
    await_epoch(client, 2);
    client.release(*granted);
    EXPECT_EQ(client.wait()->reason, Reason::kOk);
}

// What it says to its keeper, and what becomes of a STATE that it does not understand.
struct Verdict {
    int exit_code;  // -1: it serves
    bool put_aside;
};
Verdict begin_with_nonsense(bool replaceable) {
    const Folder folder;
    const std::string config = folder.write("dibsd.toml", kCounted);
    setenv("DIBS_STATE_DIR", folder.path().c_str(), 1);
    auto [own, others] = KeeperSocket::make_pair();
    const OwnProgram program{std::getenv("DIBS_DIBSD"),
                             {"--config", config, "--socket", folder.path() + "/s"}};
    const Process broker = Process::start(program, "--link", others.get());
    unsetenv("DIBS_STATE_DIR");
    others.reset();
    KeeperSocket keeper(std::move(own));
    KeeperMessage begin;
    begin.word = KeeperWord::kBegin;
    begin.death_ns = 1;
    begin.replaceable = replaceable ? 1 : 0;
    const shm::Descriptor self = Process::own_pidfd();
    const shm::Descriptor timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    keeper.send(begin, std::array{self.get(), timer.get()});
    KeeperMessage hold;
    hold.what = Kept::kState;
    const shm::Descriptor state = shm::make_memfd("nonsense", 1 << 20);
    keeper.send(hold, std::array{state.get()});
    KeeperMessage go;
    go.word = KeeperWord::kGo;
    keeper.send(go);
    Verdict verdict{-1, false};
    for (bool serves = false; !serves && verdict.exit_code < 0;) {
        std::array<struct pollfd, 2> on = {{{keeper.fd(), POLLIN, 0}, {broker.pidfd(), POLLIN, 0}}};
        (void)poll(on.data(), on.size(), -1);
        KeeperPacket packet;
        while (keeper.receive(packet) == KeeperSocket::Received::kPacket)
            serves = serves || packet.message.word == KeeperWord::kServing;
        if (const auto ending = broker.ending()) verdict.exit_code = ending->number;
    }
    broker.signal(SIGKILL);
    (void)broker.await_death(-1);
    verdict.put_aside = std::filesystem::exists(folder.path() + "/failed-0.state");
    return verdict;
}

TEST(Upgrade, PutsNothingAsideThatTheOldProgramMayGoOnFrom) {
    const Verdict upgrade = begin_with_nonsense(true);
    EXPECT_EQ(upgrade.exit_code, 1);
    EXPECT_FALSE(upgrade.put_aside);
    const Verdict last = begin_with_nonsense(false);
    EXPECT_EQ(last.exit_code, -1);
    EXPECT_TRUE(last.put_aside);
}

}  // namespace
}  // namespace dibs::test
