// tests/clientlib/signal_test.cpp -- signals that come while the library waits for a socket: it
// waits on, for as long as it would have and no longer.
//
// The broker is a listening socket that this thread plays. A signal is sent once the thread that
// waits is seen asleep, and has been handled before the next one.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "dibs/dibs.h"
#include "shm/handshake.hpp"
#include "tests/clientlib/fixture.hpp"
#include "tests/clientlib/packed_answer.hpp"

namespace dibs::test {
namespace {

constexpr int kSignals = 20;

std::atomic<int> handled = 0;

// A thread that asks something, and is asleep most of the time.
class Asking {
  public:
    explicit Asking(std::function<int()> ask)
        : thread_([this, ask = std::move(ask)] {
              name_ = gettid();
              code_ = ask();
              done_ = true;
          }) {}
    ~Asking() { thread_.join(); }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

    [[nodiscard]] bool done() const { return done_; }
    [[nodiscard]] int code() const { return code_; }  // once it is done
    void wait() const {
        while (!done_)
            sched_yield();
    }
    // Once it sleeps, unless it has ended: the handler has run.
    void interrupt() {
        while (!done_ && !asleep())
            sched_yield();
        if (done_) return;
        const int before = handled;
        pthread_kill(thread_.native_handle(), SIGUSR1);
        while (!done_ && handled == before)
            sched_yield();
    }

  private:
    [[nodiscard]] bool asleep() const {
        std::ifstream file("/proc/self/task/" + std::to_string(name_) + "/stat");
        std::string text;
        std::getline(file, text);
        const size_t end = text.rfind(") ");
        return end != std::string::npos && text[end + 2] == 'S';
    }

    std::atomic<pid_t> name_ = 0;
    std::atomic<int> code_ = 0;
    std::atomic<bool> done_ = false;
    std::thread thread_;
};

class Signal : public testing::Test {
  protected:
    Signal() {
        struct sigaction action = {};
        action.sa_handler = [](int) { ++handled; };
        EXPECT_EQ(sigaction(SIGUSR1, &action, &before_), 0);
        char folder[] = "/tmp/dibs-signal-XXXXXX";
        EXPECT_NE(mkdtemp(folder), nullptr);
        folder_ = folder;
        path = folder_ + "/dibs.sock";
        address_.sun_family = AF_UNIX;
        path.copy(address_.sun_path, sizeof address_.sun_path - 1);
        listener_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        EXPECT_EQ(bind(listener_, name(), sizeof address_), 0);
        EXPECT_EQ(listen(listener_, 0), 0);
        options.size = sizeof options;
        options.socket_path = path.c_str();
        options.error_text = why;
        options.error_text_size = sizeof why;
    }
    ~Signal() override {
        close(listener_);
        unlink(path.c_str());
        rmdir(folder_.c_str());
        sigaction(SIGUSR1, &before_, nullptr);
    }

    // Nobody else gets in before it has been accepted.
    [[nodiscard]] int fill_backlog() const {
        const int first = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        EXPECT_EQ(connect(first, name(), sizeof address_), 0);
        return first;
    }
    [[nodiscard]] int accept() const { return accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); }
    static void interrupt(Asking& asking) {
        for (int i = 0; i < kSignals; ++i)
            asking.interrupt();
        EXPECT_FALSE(asking.done());
    }
    // Lets the first one go, and takes the one behind it, after signals for it; negative: it does
    // not wait any more.
    [[nodiscard]] int accept_the_second(Asking& asking, int first) const {
        interrupt(asking);
        close(accept());
        close(first);
        return asking.done() ? -1 : accept();
    }
    template <typename Message>
    static void hear(int peer) {
        Message message;
        EXPECT_EQ(recv(peer, &message, sizeof message, 0), static_cast<ssize_t>(sizeof message));
    }
    template <typename Message>
    static void say(int peer, const Message& message) {
        EXPECT_EQ(send(peer, &message, sizeof message, MSG_NOSIGNAL),
                  static_cast<ssize_t>(sizeof message));
    }

    std::string path;
    dibs_connect_options options = {};
    char why[128] = "";

  private:
    [[nodiscard]] const sockaddr* name() const {
        return reinterpret_cast<const sockaddr*>(&address_);
    }

    std::string folder_;
    sockaddr_un address_ = {};
    int listener_ = -1;
    struct sigaction before_ = {};
};

TEST_F(Signal, EndsNoHandshake) {
    const int first = fill_backlog();
    dibs_session* session = nullptr;
    Asking asking([&] { return dibs_connect(&options, &session); });
    const int peer = accept_the_second(asking, first);
    ASSERT_GE(peer, 0);
    hear<shm::Hello>(peer);
    interrupt(asking);
    shm::Farewell farewell;
    farewell.code = shm::FarewellCode::kDraining;
    std::strcpy(farewell.text, "this broker is about to stop");
    say(peer, farewell);
    asking.wait();
    EXPECT_EQ(asking.code(), DIBS_EDRAINING) << why;
    close(peer);
}

TEST_F(Signal, EndsNoQuestion) {
    const int first = fill_backlog();
    Asking asking([&] { return dibs_account_delete(&options, "alice"); });
    const int peer = accept_the_second(asking, first);
    ASSERT_GE(peer, 0);
    hear<shm::AdminHello>(peer);
    interrupt(asking);
    say(peer, shm::AdminWelcome{});
    uint8_t request[4096];
    EXPECT_GT(recv(peer, request, sizeof request, 0), 0);
    interrupt(asking);
    admin::AnswerT answer;
    answer.code = admin::Code::not_found;
    const std::vector<uint8_t> bytes = packed(answer);
    EXPECT_EQ(send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    asking.wait();
    EXPECT_EQ(asking.code(), DIBS_ENOTFOUND) << why;
    close(peer);
}

// Each begins the time anew, if the time is not counted as a whole: then this does not end.
TEST_F(Signal, ProlongsNoWait) {
    options.timeout_ns = 20 * DIBS_MILLISECOND;
    dibs_session* session = nullptr;
    Asking asking([&] { return dibs_connect(&options, &session); });
    while (!asking.done())
        asking.interrupt();
    EXPECT_EQ(asking.code(), DIBS_ENOBROKER) << why;
}

// They come more often than the net, which would look whether anybody is there.
TEST_F(Signal, KeepsNoWaitFromSeeingThatTheBrokerIsGone) {
    FakeBroker broker;
    const Client client(broker);
    broker.die();
    dibs_completion end = {};
    Asking asking([&] { return dibs_reap(client, &end, 1, DIBS_FOREVER); });
    while (!asking.done())
        asking.interrupt();
    EXPECT_EQ(asking.code(), DIBS_EBROKERLOST);
}

}  // namespace
}  // namespace dibs::test
