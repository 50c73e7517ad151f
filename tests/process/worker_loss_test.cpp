// tests/process/worker_loss_test.cpp -- `dibs worker` without its broker: what becomes of its
// processes and of the use in hand, and what is said when the broker goes and when one is back.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <thread>

#include "shm/handshake.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/web_workers.hpp"

namespace dibs::test {
namespace {

class WorkerLoss : public Worker {};

TEST_F(WorkerLoss, OffersItsProcessesToTheNextBroker) {
    const auto tool = start({"web"});
    pid_t process = 0;
    {
        const Attached client(dibsd_.socket(), "web");
        process = pid_of(client);
    }
    dibsd_.signal(SIGKILL);
    (void)dibsd_.wait();
    EXPECT_NE(tool->error_line_with("its session at the broker has ended"), "");
    Dibsd next(folder_, kPools);
    ASSERT_TRUE(next.ready());
    EXPECT_NE(tool->error_line_with(": back: the broker has its slot"), "");
    const Attached client(next.socket(), "web");
    EXPECT_EQ(pid_of(client), process);
}

// Answers every greeting at the socket as a broker does that is about to stop, until it is gone.
class Stopping {
  public:
    explicit Stopping(const std::string& path) : path_(path) {
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        (void)unlink(path.c_str());
        const auto* name = reinterpret_cast<const sockaddr*>(&address);
        EXPECT_EQ(bind(listener_.get(), name, sizeof address), 0);
        EXPECT_EQ(listen(listener_.get(), 8), 0);
        thread_ = std::thread([this] { serve(); });
    }
    ~Stopping() {
        (void)shutdown(listener_.get(), SHUT_RDWR);
        thread_.join();
        (void)unlink(path_.c_str());
    }
    Stopping(const Stopping&) = delete;
    Stopping& operator=(const Stopping&) = delete;

  private:
    void serve() const {
        for (;;) {
            const shm::Descriptor guest(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!guest.valid()) return;
            shm::Farewell farewell;
            farewell.code = shm::FarewellCode::kDraining;
            farewell.broker_layout = shm::kLayoutVersion;
            const std::string_view said = "this broker is about to stop";
            farewell.text_size = static_cast<uint32_t>(said.copy(farewell.text, said.size()));
            (void)send(guest.get(), &farewell, sizeof farewell, MSG_NOSIGNAL);
        }
    }

    std::string path_;
    shm::Descriptor listener_{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
    std::thread thread_;
};

TEST_F(WorkerLoss, KeepsTryingWhereTheBrokerIsAboutToStop) {
    const auto tool = start({"web"});
    EXPECT_EQ(tool->error_line(), "dibs worker: 1 slot of pool \"web\" ready");
    dibsd_.signal(SIGKILL);
    (void)dibsd_.wait();
    {
        const Stopping stopping(dibsd_.socket());
        EXPECT_NE(tool->error_line_with("this broker is about to stop; trying again"), "");
        Tool claim(dibsd_.socket(), {"claim", "web"});
        EXPECT_EQ(claim.wait(), 75);
        EXPECT_EQ(claim.error_rest(),
                  "dibs claim: no session with the broker at " + dibsd_.socket() +
                      ": this broker is about to stop\n");
    }
    Dibsd next(folder_, kPools);
    ASSERT_TRUE(next.ready());
    EXPECT_NE(tool->error_line_with(": back: the broker has its slot"), "");
    const Attached client(next.socket(), "web");
    EXPECT_GT(pid_of(client), 0);
}

TEST(WorkerTakenOver, AnswersTheUseThatWasInHand) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    // Here already: the slot may be granted before its process has begun with its script.
    const std::string fifo = folder.path() + "/fifo";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    Tool tool(dibsd.socket(),
              {"worker",
               "web",
               "--",
               "sh",
               "-c",
               "while read -r line; do read x < " + fifo + "; echo \"$x\"; done"});
    const Attached client(dibsd.socket(), "web");
    for (const char* word : {"first", "second"}) {
        const dibs_completion end = client.claim();
        ASSERT_EQ(end.outcome, DIBS_GRANTED);
        const pid_t killed = dibsd.broker();
        dibsd.kill_broker();
        (void)dibsd.broker(killed);
        Tool go(dibsd.socket(),
                {"exec", "gpu", "--", "sh", "-c", std::string("echo ") + word + " > " + fifo});
        EXPECT_EQ(Worker::answer_of(client, end.lease), word);
        EXPECT_EQ(go.wait(), 0);  // the next one must not meet this writer in the fifo
    }
    tool.signal(SIGTERM);
    EXPECT_EQ(tool.wait(), 0);
    EXPECT_EQ(tool.error_rest(), "dibs worker: 1 slot of pool \"web\" ready\n");
}

}  // namespace
}  // namespace dibs::test
