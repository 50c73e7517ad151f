// tests/hostile/control_plane_test.cpp -- those who abuse the door: floods, half handshakes, wrong
// versions, pushed descriptors, stopped and forking clients.
//
// Each does so as another user, where the test may be one, while a client of this process claims
// and releases and new ones attach. In the end the broker has as many descriptors as at first.
// DIBS_LONG does sixty times as much.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/pushed.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/user.hpp"

namespace dibs::test {
namespace {

using shm::FarewellCode;
using shm::Outcome;

constexpr int kPassRights = 83;  // SO_PASSRIGHTS: older headers do not have it

int times(int count) {
    return std::getenv("DIBS_LONG") != nullptr ? 60 * count : count;
}

void become_stranger() {
    if (geteuid() == 0) become_user(kBob, kBob);
}

class ControlPlane : public testing::Test {
  protected:
    void SetUp() override {
        // A hardened broker shows its descriptors to root alone, and whoever floods as its own user
        // has the handshakes of those who are to come in beside it.
        if (more().empty()) {
            DIBS_NEEDS_ROOT();
        }
        open_folder(folder_.path());
        dibsd_ = std::make_unique<Dibsd>(
            folder_,
            more() +
                "socket_mode = \"0666\"\n[limits]\nsessions = 64\n"
                "[[pool]]\nname = \"tokens\"\nkind = \"counted\"\nslots = 4\n");
        ASSERT_TRUE(dibsd_->ready());
        good_ = std::make_unique<RawClient>(dibsd_->socket());
        ASSERT_TRUE(good_->attached());
        // What a Welcome took is closed after it was sent, by the thread that refuses this one and
        // hangs up then.
        const shm::Descriptor probe = connect_to(dibsd_->socket());
        ASSERT_EQ(send(probe.get(), "x", 1, MSG_NOSIGNAL), 1);
        ASSERT_TRUE(receive_answer(probe.get()).farewell);
        char none = 0;
        ASSERT_EQ(recv(probe.get(), &none, 1, 0), 0);
        descriptors_ = descriptors();
    }
    [[nodiscard]] virtual std::string more() const { return ""; }  // of the configuration
    // While the stranger does this, until it is done: others are served, and come in.
    void endure(const std::function<void(const Child&)>& attack) {
        Child stranger([&](const Child& self) {
            become_stranger();
            self.mark('b');
            attack(self);
        });
        ASSERT_EQ(stranger.marked(), 'b');
        for (int i = 0; i < times(200); ++i)
            ASSERT_NO_FATAL_FAILURE(serve(*good_));
        for (int i = 0; i < times(5); ++i) {
            RawClient newcomer(dibsd_->socket());
            ASSERT_TRUE(newcomer.attached());
            ASSERT_NO_FATAL_FAILURE(serve(newcomer));
            newcomer.worker_word(shm::Op::kClose, 0, 0);
            (void)newcomer.wait_end();
        }
        ASSERT_EQ(stranger.marked(), 'e');
    }
    static void serve(RawClient& client) {
        client.claim(1);
        const auto granted = client.wait();
        ASSERT_TRUE(granted);
        ASSERT_EQ(granted->outcome, Outcome::kGranted);
        client.release(*granted);
        ASSERT_EQ(client.wait()->reason, shm::Reason::kOk);
    }
    // The stranger is gone: so is everything that it had.
    void expect_nothing_left() {
        while (descriptors() != descriptors_)
            sched_yield();
        good_->await_pool(0, [](const auto& pool) { return pool.idle == 4 && pool.queued == 0; });
        while (good_->board().sessions.load() != 1)
            sched_yield();
        ASSERT_NO_FATAL_FAILURE(serve(*good_));
    }
    [[nodiscard]] size_t descriptors() const { return listed("fd"); }
    [[nodiscard]] size_t listed(const std::string& table) const {
        const std::string folder = "/proc/" + std::to_string(dibsd_->pid()) + "/" + table;
        return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
    }
    [[nodiscard]] const std::string& socket() const { return dibsd_->socket(); }

    Folder folder_;
    std::unique_ptr<Dibsd> dibsd_;
    std::unique_ptr<RawClient> good_;
    size_t descriptors_ = 0;
};

// As with a kernel that lets descriptors in, which clients pass unasked.
class OpenDoor : public ControlPlane {
    [[nodiscard]] std::string more() const override { return "hardening = \"off\"\n"; }
};

// What a packet is answered with; 0: nothing, the broker hung up.
uint32_t answered(const std::string& path, const void* packet, size_t size) {
    const shm::Descriptor socket = connect_to(path);
    if (!socket.valid()) return 0;
    (void)send(socket.get(), packet, size, MSG_NOSIGNAL);
    const Answer answer = receive_answer(socket.get());
    return answer.farewell ? static_cast<uint32_t>(answer.farewell->code) : 0;
}

// At the door, behind a Hello, in a conversation, and to a session's events.
TEST_F(OpenDoor, EnduresDescriptorsWhoseCloseLasts) {
    endure([&](const Child& self) {
        std::vector<Lingering> kept(5);
        const shm::Hello hello;
        const shm::Descriptor first = connect_to(socket());
        if (!kept[0].push_to(first.get(), &hello, sizeof(hello))) return self.mark('1');
        if (!receive_answer(first.get()).farewell) return self.mark('2');
        const shm::Descriptor second = connect_to(socket());
        (void)send(second.get(), &hello, sizeof(hello), MSG_NOSIGNAL);
        (void)kept[1].push_to(second.get(), "x", 1);  // the broker may have shut that way by now
        const shm::Descriptor third = connect_to(socket());
        const shm::AdminHello admin;
        (void)send(third.get(), &admin, sizeof(admin), MSG_NOSIGNAL);
        (void)receive_answer(third.get());
        if (!kept[2].push_to(third.get(), "x", 1)) return self.mark('3');
        char last = 0;
        if (recv(third.get(), &last, 1, 0) > 0) return self.mark('4');  // it is hung up
        {
            const shm::Descriptor gone = connect_to(socket());
            (void)send(gone.get(), &admin, sizeof(admin), MSG_NOSIGNAL);
            struct pollfd answered = {gone.get(), POLLIN, 0};
            (void)poll(&answered, 1, -1);
            if (!kept[4].push_to(gone.get(), "x", 1)) return self.mark('7');
        }  // with the answer unread
        const RawClient attached(socket());
        if (!attached.attached()) return self.mark('5');
        if (kept[3].push_to(attached.events(), "x", 1)) return self.mark('6');
    });
    expect_nothing_left();
}

// Each close would last for an hour: while their owner lives none does, and nothing waits for it.
TEST_F(OpenDoor, EnduresAFloodOfDescriptorsWhoseCloseLasts) {
    const size_t threads = listed("task");
    Child stranger([&](const Child& self) {
        become_stranger();
        const shm::Hello hello;
        std::vector<Lingering> kept(static_cast<size_t>(times(20)));
        for (Lingering& one : kept) {
            const shm::Descriptor door = connect_to(socket());
            if (!one.push_to(door.get(), &hello, sizeof(hello))) self.mark('1');
        }
        self.mark('p');
        for (;;)
            pause();
    });
    ASSERT_EQ(stranger.marked(), 'p');
    while (descriptors() != descriptors_ || listed("task") > threads + 1)
        sched_yield();
    stranger.kill();
    expect_nothing_left();
}

TEST_F(ControlPlane, LetsNoDescriptorsIn) {
    int lets = 1;
    socklen_t size = sizeof(lets);
    if (getsockopt(good_->socket(), SOL_SOCKET, kPassRights, &lets, &size) != 0)
        GTEST_SKIP() << "this kernel cannot keep them out";
    const shm::Hello hello;
    const shm::Descriptor door = connect_to(socket());
    EXPECT_EQ(push(door.get(), &hello, sizeof(hello), 1), -1);
    EXPECT_EQ(errno, EPERM);
    ASSERT_EQ(send(door.get(), &hello, sizeof(hello), MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof(hello)));
    EXPECT_TRUE(receive_answer(door.get()).welcome);
}

TEST_F(ControlPlane, EnduresAFloodOfConnections) {
    endure([&](const Child&) {
        std::vector<shm::Descriptor> kept;
        for (int i = 0; i < times(4000); ++i) {
            kept.push_back(connect_to(socket()));
            if (kept.size() == 700) kept.clear();
        }
        kept.clear();
    });
    expect_nothing_left();
}

TEST_F(ControlPlane, EnduresHalfHandshakesAndAnswersEach) {
    endure([&](const Child& self) {
        const shm::Hello hello;
        for (int i = 0; i < times(500); ++i) {
            const auto code = static_cast<FarewellCode>(
                answered(socket(), &hello, 1 + static_cast<size_t>(i) % 39));
            // As often as it may, it is told what is wrong; beyond that, that it comes too often.
            if (code != FarewellCode::kMalformed && code != FarewellCode::kLimit)
                return self.mark('!');
        }
    });
    expect_nothing_left();
}

TEST_F(ControlPlane, EnduresWrongVersionsAndNamesBothNumbers) {
    endure([&](const Child& self) {
        for (int i = 0; i < times(500); ++i) {
            shm::Hello hello;
            hello.layout_version = 2 + static_cast<uint32_t>(i);
            const RawClient client(socket(), hello);
            const shm::Farewell& farewell = client.farewell();
            const std::string text(farewell.text, farewell.text_size);
            if (farewell.code == FarewellCode::kLimit) continue;
            if (farewell.code != FarewellCode::kVersion || farewell.broker_layout != 1 ||
                farewell.client_layout != hello.layout_version ||
                text.find("layout " + std::to_string(hello.layout_version)) == std::string::npos ||
                text.find("layout 1") == std::string::npos) {
                return self.mark('!');
            }
        }
    });
    expect_nothing_left();
}

TEST_F(OpenDoor, EnduresPushedDescriptorsAndKeepsNone) {
    endure([&](const Child& self) {
        const shm::Hello hello;
        for (int i = 0; i < times(300); ++i) {
            const shm::Descriptor alone = connect_to(socket());
            if (push(alone.get(), &hello, sizeof(hello), 1 + i % 253) > 0) {
                const Answer answer = receive_answer(alone.get());
                if (!answer.farewell) return self.mark('!');
            }
            if (i % 50 != 0) continue;
            const RawClient attached(socket());
            if (!attached.attached()) continue;
            for (int more = 0; more < 300; ++more)  // until the broker has closed that way
                (void)push(attached.socket(), "x", 1, 253);
        }
    });
    expect_nothing_left();
}

TEST_F(ControlPlane, EnduresClientsThatAreStoppedAtEachStep) {
    const int steps = 4;
    for (int round = 0; round < times(1); ++round) {
        std::vector<std::unique_ptr<Child>> stopped;
        for (int i = 0; i < 12; ++i) {
            stopped.push_back(std::make_unique<Child>([&](const Child& self) {
                become_stranger();
                shm::Descriptor silent;
                std::unique_ptr<RawClient> client;
                const shm::Hello hello;
                if (i % steps < 2) silent = connect_to(socket());
                if (i % steps == 1) (void)send(silent.get(), &hello, sizeof(hello), MSG_NOSIGNAL);
                if (i % steps >= 2) client = std::make_unique<RawClient>(socket());
                if (i % steps == 3) {  // with answers that it never reads
                    for (uint16_t tag = 0; tag < 100; ++tag)
                        client->claim(tag);
                }
                self.mark('s');
                raise(SIGSTOP);
                for (;;)
                    pause();
            }));
            ASSERT_EQ(stopped.back()->marked(), 's');
        }
        RawClient newcomer(dibsd_->socket());
        ASSERT_TRUE(newcomer.attached());
        // Some of the four tokens may be the stopped ones'; nobody overtakes whoever waits, so the
        // newcomer is told at once how things stand.
        newcomer.claim(1, 0, 1, 0);
        const auto told = newcomer.wait();
        ASSERT_TRUE(told);
        if (told->outcome == Outcome::kGranted) {
            newcomer.release(*told);
            ASSERT_TRUE(newcomer.wait());
        }
        stopped.clear();
        ASSERT_NO_FATAL_FAILURE(serve(newcomer));
        newcomer.worker_word(shm::Op::kClose, 0, 0);
        (void)newcomer.wait_end();
    }
    expect_nothing_left();
}

TEST_F(ControlPlane, EnduresClientsThatForkAndDie) {
    endure([&](const Child&) {
        for (int i = 0; i < times(60); ++i) {
            const pid_t parent = fork();
            if (parent == 0) {
                RawClient client(socket());
                if (client.attached()) {
                    client.claim(1);
                    client.claim(2);
                }
                if (fork() == 0) {  // has all that its parent had, until that is gone
                    while (getppid() != 1 && client.attached() &&
                           client.down().session_state.load() ==
                               static_cast<uint32_t>(shm::SessionState::kOpen)) {
                        sched_yield();
                    }
                }
                _exit(0);
            }
            (void)waitpid(parent, nullptr, 0);
        }
    });
    expect_nothing_left();
}

}  // namespace
}  // namespace dibs::test
