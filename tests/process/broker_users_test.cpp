// tests/process/broker_users_test.cpp -- dibsd and several users: what each may have, no more.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "shm/operation.hpp"
#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/user.hpp"

namespace dibs::test {
namespace {

using shm::FarewellCode;
using shm::Outcome;
using shm::Reason;

const char* const kOpen =
    "socket_mode = \"0666\"\n"
    "[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 2\n"
    "[[pool]]\nname = \"private\"\nkind = \"counted\"\nslots = 2\n";

// What a client that runs as another user finds, as one letter: the body's answer.
template <typename Body>
char as_user(uint32_t uid, uint32_t gid, const std::vector<gid_t>& groups, Body body) {
    Child child([&](const Child& self) {
        become_user(uid, gid, groups);
        self.mark(body());
    });
    return child.marked();
}

// In a child whose sessions should go on: until it is killed.
[[noreturn]] void stay() {
    for (;;)
        pause();
}

char letter(Reason reason) {
    switch (reason) {
        case Reason::kOk:
            return 'o';
        case Reason::kLimit:
            return 'l';
        case Reason::kNotAllowed:
            return 'n';
        default:
            return '?';
    }
}

// The reasons of these claims, one after the other, none of them released.
std::string claimed(RawClient& client, uint16_t pool, uint16_t count) {
    std::string letters;
    for (uint16_t i = 0; i < count; ++i) {
        client.claim(static_cast<uint16_t>(pool * 100 + i), pool);
        const auto end = client.wait();
        letters += end ? letter(end->reason) : '!';
    }
    return letters;
}

TEST(Users, HaveTheSessionsOfTheirPolicyAndLeaveTheOthersTheirs) {
    DIBS_NEEDS_ROOT();
    const Folder folder;
    open_folder(folder.path());
    const Dibsd dibsd(folder, std::string(kOpen) + "[[policy]]\nuser = 61001\nsessions = 2\n");
    Child alice([&](const Child& self) {
        become_user(kAlice, kAlice);
        const RawClient one(dibsd.socket());
        const RawClient two(dibsd.socket());
        const RawClient three(dibsd.socket());
        const bool limited =
            three.farewell().code == FarewellCode::kLimit &&
            text_of(three.farewell()) == "user 61001 has 2 sessions, as many as its policy allows";
        self.mark(one.attached() && two.attached() && limited ? 'y' : 'n');
        stay();
    });
    EXPECT_EQ(alice.marked(), 'y');
    EXPECT_EQ(as_user(kBob,
                      kBob,
                      {},
                      [&] {
                          const RawClient one(dibsd.socket());
                          const RawClient two(dibsd.socket());
                          const RawClient three(dibsd.socket());
                          return three.attached() ? 'y' : 'n';
                      }),
              'y');
}

// A worker reads what claims bring, and answers them: who may claim is not who may offer.
TEST(Users, OfferSlotsOnlyWhereAPolicyNamesThem) {
    DIBS_NEEDS_ROOT();
    const Folder folder;
    open_folder(folder.path());
    const Dibsd dibsd(folder,
                      "socket_mode = \"0666\"\n[[pool]]\nname = \"web\"\nkind = \"worker\"\n"
                      "[[policy]]\nuser = 61002\noffers = [\"web\"]\n");
    const auto offer = [&] {
        RawClient client(dibsd.socket());
        const auto end = client.announce(0, true);
        return end ? letter(end->reason) : '!';
    };
    EXPECT_EQ(as_user(kAlice, kAlice, {}, offer), 'n');
    EXPECT_EQ(as_user(kBob, kBob, {}, offer), 'o');
    EXPECT_EQ(offer(), 'o');
}

TEST(Users, AreToldApartBySupplementaryGroups) {
    DIBS_NEEDS_ROOT();
    const Folder folder;
    open_folder(folder.path());
    const Dibsd dibsd(folder,
                      std::string(kOpen) +
                          "[[policy]]\ngroup = 61500\npools = [\"tokens\", \"private\"]\n"
                          "[[policy]]\ndefault = true\npools = [\"tokens\"]\nleases = 1\n");
    const auto pools = [&] {
        RawClient client(dibsd.socket());
        std::string letters = claimed(client, 0, 1);
        letters += claimed(client, 1, 2);
        return letters == "onn" ? 'd' : 'g';
    };
    EXPECT_EQ(as_user(kAlice, kAlice, {}, pools), 'd');
    EXPECT_EQ(as_user(kAlice, kAlice, {61400, 61500}, pools), 'g');
}

TEST(Users, ReachTheirLimitOfLeasesTogetherWithAllTheirSessions) {
    DIBS_NEEDS_ROOT();
    const Folder folder;
    open_folder(folder.path());
    const Dibsd dibsd(folder, std::string(kOpen) + "[[policy]]\nuser = 61001\nleases = 1\n");
    EXPECT_EQ(as_user(kAlice,
                      kAlice,
                      {},
                      [&] {
                          RawClient one(dibsd.socket());
                          RawClient two(dibsd.socket());
                          std::string letters = claimed(one, 0, 1);
                          letters += claimed(two, 0, 1);
                          return letters == "ol" ? 'y' : letters.back();
                      }),
              'y');
    RawClient root(dibsd.socket());
    EXPECT_EQ(claimed(root, 0, 2), "oo");
}

TEST(Users, ReachTheirLimitOfMemoryAndOfHandshakes) {
    DIBS_NEEDS_ROOT();
    const Folder folder;
    open_folder(folder.path());
    const Dibsd dibsd(folder,
                      std::string(kOpen) +
                          "[[policy]]\nuser = 61001\nmemory = \"200KiB\"\n"
                          "[[policy]]\nuser = 61002\nhandshakes = 2\n");
    EXPECT_EQ(as_user(kAlice,
                      kAlice,
                      {},
                      [&] {
                          const RawClient one(dibsd.socket());
                          const RawClient two(dibsd.socket());
                          return one.attached() && two.farewell().code == FarewellCode::kLimit
                                     ? 'y'
                                     : 'n';
                      }),
              'y');
    dibsd.signal(SIGSTOP);
    ASSERT_EQ(waitpid(dibsd.pid(), nullptr, WUNTRACED), dibsd.pid());
    // Forty have spoken before the broker looks. Each is told something, and as a second gives back
    // two at most, however late that is, not all of them come in.
    Child bob([&](const Child& self) {
        become_user(kBob, kBob);
        std::vector<shm::Descriptor> callers;
        const shm::Hello hello;
        for (int i = 0; i < 40; ++i) {
            callers.push_back(connect_to(dibsd.socket()));
            (void)send(callers.back().get(), &hello, sizeof(hello), MSG_NOSIGNAL);
        }
        self.mark('s');
        int refused = 0;
        for (const shm::Descriptor& caller : callers) {
            const Answer answer = receive_answer(caller.get());
            if (!answer.welcome && !answer.farewell) self.mark('n');
            refused += answer.farewell && answer.farewell->code == FarewellCode::kLimit;
        }
        self.mark(refused > 0 ? 'y' : 'n');
    });
    ASSERT_EQ(bob.marked(), 's');
    dibsd.signal(SIGCONT);
    EXPECT_EQ(bob.marked(), 'y');
}

TEST(Users, GetANewPolicyOnSighup) {
    DIBS_NEEDS_ROOT();
    const Folder folder;
    open_folder(folder.path());
    const Dibsd dibsd(folder, kOpen);
    Child alice([&](const Child& self) {
        become_user(kAlice, kAlice);
        RawClient client(dibsd.socket());
        self.mark(claimed(client, 0, 1) == "o" ? 'y' : 'n');
        // The answer turns when the broker has read its configuration again.
        for (std::string now = "o"; now != "n";) {
            client.claim(9, 1);
            const auto end = client.wait();
            now = letter(end->reason);
            if (end->outcome != Outcome::kGranted) continue;
            client.release(*end);
            (void)client.wait();
        }
        self.mark('d');
    });
    ASSERT_EQ(alice.marked(), 'y');
    (void)folder.write("dibsd.toml",
                       "log_level = \"warning\"\n" + std::string(kOpen) +
                           "[[policy]]\nuser = 61001\npools = [\"tokens\"]\n");
    dibsd.signal(SIGHUP);
    EXPECT_EQ(alice.marked(), 'd');
}

// An editor or a full disk has left nothing of it. The broker opens a pipe once more when it is
// done with what came from it.
TEST(Users, KeepTheirPolicyWhereTheNewOneIsEmpty) {
    DIBS_NEEDS_ROOT();
    const Folder folder;
    open_folder(folder.path());
    const Dibsd dibsd(folder,
                      std::string(kOpen) + "[[policy]]\nuser = 61001\npools = [\"tokens\"]\n");
    const std::string file = folder.path() + "/dibsd.toml";
    ASSERT_EQ(unlink(file.c_str()), 0);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    for (const char* text : {"", " \n", "no configuration"}) {
        dibsd.signal(SIGHUP);
        shm::Descriptor pipe(open(file.c_str(), O_WRONLY | O_CLOEXEC));
        ASSERT_EQ(write(pipe.get(), text, strlen(text)), static_cast<ssize_t>(strlen(text)));
        while (pipe.valid()) {  // until nobody reads it any more
            pipe.reset();
            pipe = shm::Descriptor(open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
        }
    }
    Child alice([&](const Child& self) {
        become_user(kAlice, kAlice);
        RawClient client(dibsd.socket());
        self.mark(claimed(client, 0, 1)[0]);
        client.claim(9, 1);
        self.mark(letter(client.wait()->reason));
    });
    EXPECT_EQ(alice.marked(), 'o');
    EXPECT_EQ(alice.marked(), 'n');
}

TEST(Users, NeverHaveTheLastQuarterOfTheSessions) {
    DIBS_NEEDS_ROOT();
    const Folder folder;
    open_folder(folder.path());
    const Dibsd shared(folder, std::string(kOpen) + "[limits]\nsessions = 16\n");
    Child greedy([&](const Child& self) {
        become_user(kAlice, kAlice);
        std::vector<std::unique_ptr<RawClient>> sessions;
        do {
            sessions.push_back(std::make_unique<RawClient>(shared.socket()));
        } while (sessions.back()->attached());
        self.mark(sessions.size() == 13 && sessions.back()->farewell().code == FarewellCode::kLimit
                      ? 'y'
                      : 'n');
        stay();
    });
    EXPECT_EQ(greedy.marked(), 'y');
    EXPECT_EQ(
        as_user(kBob, kBob, {}, [&] { return RawClient(shared.socket()).attached() ? 'y' : 'n'; }),
        'y');
}

TEST(Users, AreToldAccountAndAgeOfAnothersLease) {
    DIBS_NEEDS_ROOT();
    const Folder folder;
    open_folder(folder.path());
    const Dibsd dibsd(folder, "admin_group = 61500\n" + std::string(kOpen));
    RawClient root(dibsd.socket());
    ASSERT_EQ(claimed(root, 0, 2), "oo");
    const auto seen = [&] {
        RawClient client(dibsd.socket());
        client.claim(1, 0, 1, 0);  // now or not at all
        const shm::Holder holder = shm::holder_of(*client.wait());
        if (holder.uid != 0) return '?';
        return holder.pid == 0 && holder.claim == shm::kHiddenClaim ? 'h' : 's';
    };
    EXPECT_EQ(as_user(kAlice, kAlice, {}, seen), 'h');
    EXPECT_EQ(as_user(kAlice, kAlice, {61500}, seen), 's');
}

TEST(Brokers, ThatStartAtOnceOnAStaleSocketLeaveOneListening) {
    for (int round = 0; round < 10; ++round) {
        const Folder folder;
        {  // a dead broker leaves its name behind
            Dibsd dead(folder, kOpen);
            dead.signal(SIGKILL);
            (void)dead.wait();
        }
        std::vector<std::unique_ptr<Child>> starters;
        for (int i = 0; i < 4; ++i) {
            starters.push_back(std::make_unique<Child>([&](const Child& self) {
                // Ends at once where another listens; else serves until it is killed.
                const Dibsd one(folder, kOpen);
                self.mark(one.ready() ? 'r' : 'x');
                stay();
            }));
        }
        std::string ends;
        for (const auto& starter : starters)
            ends += starter->marked();
        EXPECT_EQ(std::count(ends.begin(), ends.end(), 'r'), 1) << ends;
        EXPECT_TRUE(RawClient(folder.path() + "/dibs.sock").attached());
    }
}

TEST(Brokers, TurnCallersAwayWhenTheirDescriptorTableIsFull) {
    const Folder folder;
    const Dibsd dibsd(folder, kOpen);
    RawClient before(dibsd.socket());
    ASSERT_TRUE(before.attached());
    int highest = 0;
    const std::string table = "/proc/" + std::to_string(dibsd.pid()) + "/fd";
    for (const auto& entry : std::filesystem::directory_iterator(table))
        highest = std::max(highest, std::stoi(entry.path().filename()));
    const auto limit = static_cast<rlim_t>(highest) + 1;
    struct rlimit old = {};
    ASSERT_EQ(prlimit(dibsd.pid(), RLIMIT_NOFILE, nullptr, &old), 0);
    const struct rlimit small = {limit, old.rlim_max};
    ASSERT_EQ(prlimit(dibsd.pid(), RLIMIT_NOFILE, &small, nullptr), 0);
    std::vector<shm::Descriptor> silent;
    for (int i = 0; i < highest + 64; ++i)
        silent.push_back(connect_to(dibsd.socket()));
    int turned_away = 0;
    for (const shm::Descriptor& socket : silent) {
        const Answer answer = receive_answer(socket.get());
        ASSERT_TRUE(answer.farewell);  // nobody is left without a word
        turned_away += text_of(*answer.farewell) == "the broker's descriptor table is full";
    }
    EXPECT_GE(turned_away, 32);
    before.claim(1);
    EXPECT_EQ(before.wait()->outcome, Outcome::kGranted);
    ASSERT_EQ(prlimit(dibsd.pid(), RLIMIT_NOFILE, &old, nullptr), 0);
    EXPECT_TRUE(RawClient(dibsd.socket()).attached());
}

}  // namespace
}  // namespace dibs::test
