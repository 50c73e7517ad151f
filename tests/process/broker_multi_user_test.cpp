// tests/process/broker_multi_user_test.cpp -- where dibsd will not serve several users, and whom it
// then refuses.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "broker/multi_user.hpp"
#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/raw_client.hpp"
#include "tests/process/user.hpp"

namespace dibs::test {
namespace {

using shm::FarewellCode;

std::string own_number() {
    return std::to_string(kBrokerUser);
}

class MultiUser : public testing::Test {
  protected:
    void SetUp() override {
        DIBS_NEEDS_ROOT();
        config_ = folder_.write("dibsd.toml", "hardening = \"strict\"\nsocket_mode = \"0666\"\n");
        ASSERT_EQ(chown(folder_.path().c_str(), kBrokerUser, kBrokerUser), 0);
        ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
        ASSERT_EQ(chmod(config_.c_str(), 0644), 0);
    }
    // Starts dibsd as this user, with its words on standard error in the file "said"; its exit
    // code, or -1 if it has come to listen and has been ended then.
    int start_as(
        uint32_t uid, const std::function<void()>& meanwhile = [] {}) {
        const pid_t pid = fork();
        if (pid == 0) {
            const int said = open(said_file().c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0666);
            dup2(said, STDERR_FILENO);
            const int nothing = open("/dev/null", O_WRONLY);
            dup2(nothing, STDOUT_FILENO);
            become_user(uid, uid);
            execl(std::getenv("DIBS_DIBSD"),
                  "dibsd",
                  "--multi-user",
                  "--no-keeper",
                  "--config",
                  config_.c_str(),
                  "--socket",
                  socket().c_str(),
                  nullptr);
            _exit(127);
        }
        int status = 0;
        while (waitpid(pid, &status, WNOHANG) == 0) {
            if (!connect_to(socket()).valid()) {
                sched_yield();
                continue;
            }
            meanwhile();
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            return -1;
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    [[nodiscard]] std::string said() const {
        std::ostringstream text;
        text << std::ifstream(said_file()).rdbuf();
        return text.str();
    }
    [[nodiscard]] std::string said_file() const { return folder_.path() + "/said"; }
    [[nodiscard]] std::string socket() const { return folder_.path() + "/dibs.sock"; }

    const Folder folder_;
    std::string config_;
};

std::string refusal_of(const std::string& path, uint32_t uid) {
    const Folder exchange;
    open_folder(exchange.path());
    const std::string file = exchange.write("text", "");
    EXPECT_EQ(chmod(file.c_str(), 0666), 0);
    const Child child([&](const Child&) {
        become_user(uid, uid);
        const RawClient client(path);
        std::ofstream(file) << (client.attached() ? "attached"
                                                  : std::string(client.farewell().text,
                                                                client.farewell().text_size));
    });
    EXPECT_EQ(child.marked(), 'e');
    std::string text;
    std::getline(std::ifstream(file), text);
    return text;
}

TEST_F(MultiUser, ServesOthersAndGivesItsOwnUidNoSession) {
    std::string own;
    std::string nobody;
    std::string alice;
    EXPECT_EQ(start_as(kBrokerUser,
                       [&] {
                           own = refusal_of(socket(), kBrokerUser);
                           nobody = refusal_of(socket(), overflow_uid());
                           alice = refusal_of(socket(), kAlice);
                       }),
              -1)
        << said();
    EXPECT_EQ(own,
              "this broker serves several users: its own, " + own_number() +
                  ", may administer it and gets no session");
    EXPECT_EQ(nobody,
              "this broker serves several users, and its namespace does not tell who yours is");
    EXPECT_EQ(alice, "attached");
}

TEST_F(MultiUser, RefusesASocketThatLetsInNobodyElse) {
    (void)folder_.write("dibsd.toml", "socket_mode = \"0600\"\n");
    EXPECT_EQ(start_as(kBrokerUser), 2);
    EXPECT_EQ(said(),
              "dibsd: --multi-user: socket_mode lets in nobody but user " + own_number() +
                  " itself; write "
                  "\"0666\", or \"0660\" with a group of its own\n");
}

TEST_F(MultiUser, RefusesAFolderOrAConfigurationThatOthersCanChange) {
    ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
    ASSERT_EQ(chmod(config_.c_str(), 0666), 0);
    EXPECT_EQ(start_as(kBrokerUser), 2);
    EXPECT_EQ(said(),
              "dibsd: --multi-user: others can change the socket's folder " + folder_.path() +
                  "\ndibsd: --multi-user: others can change the configuration " + config_ + "\n");
}

TEST_F(MultiUser, RefusesAUidThatAnotherProgramRunsAs) {
    const Child other([&](const Child&) { become_user(kBrokerUser, kBrokerUser); });
    ASSERT_EQ(other.marked(), 'e');
    EXPECT_EQ(start_as(kBrokerUser), 2);
    EXPECT_EQ(said().rfind("dibsd: --multi-user: another program runs as user " + own_number() +
                               ": process " + std::to_string(other.pid()),
                           0),
              0U)
        << said();
}

TEST_F(MultiUser, RefusesAUidThatUsersOfOtherNamespacesAppearAs) {
    ASSERT_EQ(chown(folder_.path().c_str(), overflow_uid(), overflow_uid()), 0);
    EXPECT_EQ(start_as(overflow_uid()), 2);
    EXPECT_NE(said().find("is what users of other namespaces appear as"), std::string::npos);
}

TEST_F(MultiUser, StartsAsRootAndGivesRootNoSession) {
    ASSERT_EQ(chown(folder_.path().c_str(), 0, 0), 0);
    std::string root;
    EXPECT_EQ(start_as(0, [&] { root = refusal_of(socket(), 0); }), -1) << said();
    EXPECT_EQ(
        root,
        "this broker serves several users: its own, 0, may administer it and gets no session");
}

}  // namespace
}  // namespace dibs::test
