// tests/process/broker_multi_user_test.cpp -- where dibsd will not serve several users, and whom it
// then refuses.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "broker/sandbox/multi_user.hpp"
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
        ASSERT_EQ(chmod(bin_.path().c_str(), 0755), 0);
        program_ = bin_.path() + "/dibsd";
        std::filesystem::copy_file(std::getenv("DIBS_DIBSD"), program_);
        ASSERT_EQ(chmod(program_.c_str(), 0755), 0);
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
            if (lent_ >= 0) {
                (void)dup2(lent_, 3);
                (void)setenv("LISTEN_FDS", "1", 1);
                (void)setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
            }
            const std::string configuration = config_;
            const std::string place = socket();
            const std::array<const char*, 8> arguments = {"dibsd",
                                                          "--multi-user",
                                                          "--no-keeper",
                                                          "--config",
                                                          configuration.c_str(),
                                                          "--socket",
                                                          place.c_str(),
                                                          nullptr};
            become_user(uid, uid);
            execv(program_.c_str(), const_cast<char* const*>(arguments.data()));
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
    [[nodiscard]] std::string socket() const { return place_.empty() ? at("dibs.sock") : place_; }
    [[nodiscard]] std::string at(const std::string& name) const {
        return folder_.path() + "/" + name;
    }
    // A folder below this one; its path.
    std::string make(const std::string& name, uint32_t owner, mode_t mode) const {
        EXPECT_EQ(mkdir(at(name).c_str(), 0755), 0);
        EXPECT_EQ(chown(at(name).c_str(), owner, owner), 0);
        EXPECT_EQ(chmod(at(name).c_str(), mode), 0);
        return at(name);
    }
    // That it does not start, and why its socket's place is none.
    void expect_no_place(const std::string& why) {
        EXPECT_EQ(start_as(kBrokerUser), 2);
        EXPECT_EQ(said(),
                  "dibsd: --multi-user: others can put a socket of theirs at " + socket() + ": " +
                      why + "\n");
    }

    const Folder folder_;
    const Folder bin_;
    std::string program_;
    std::string config_;
    std::string place_;  // of the socket, unless empty
    int lent_ = -1;      // socket
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
    const std::string why =
        folder_.path() + " can be written by its group or everybody (mode 0777)\n";
    EXPECT_EQ(said(),
              "dibsd: --multi-user: others can put a socket of theirs at " + socket() + ": " + why +
                  "dibsd: --multi-user: others can change the configuration " + config_ + ": " +
                  why);
    ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
    EXPECT_EQ(start_as(kBrokerUser), 2);
    EXPECT_EQ(said(),
              "dibsd: --multi-user: others can change the configuration " + config_ + ": " +
                  config_ + " can be written by its group or everybody (mode 0666)\n");
    ASSERT_EQ(chmod(config_.c_str(), 0644), 0);
    ASSERT_EQ(chown(config_.c_str(), kAlice, kAlice), 0);
    EXPECT_EQ(start_as(kBrokerUser), 2);
    EXPECT_EQ(said(),
              "dibsd: --multi-user: others can change the configuration " + config_ + ": " +
                  config_ + " belongs to user " + std::to_string(kAlice) + "\n");
}

TEST_F(MultiUser, RefusesAFolderFurtherUpThatOthersCanChange) {
    const std::string alices = make("alices", kAlice, 0755);
    make("alices/own", kBrokerUser, 0755);
    place_ = alices + "/own/dibs.sock";
    expect_no_place(alices + " belongs to user " + std::to_string(kAlice));
    const std::string open = make("open", kBrokerUser, 0775);
    make("open/own", kBrokerUser, 0755);
    place_ = open + "/own/dibs.sock";
    expect_no_place(open + " can be written by its group or everybody (mode 0775)");
    ASSERT_EQ(chmod(open.c_str(), 01777), 0);  // sticky: what is the broker's stays there
    EXPECT_EQ(start_as(kBrokerUser), -1) << said();
}

TEST_F(MultiUser, RefusesWhatLinksLeadTo) {
    const std::string alices = make("alices", kAlice, 0755);
    make("alices/own", kBrokerUser, 0755);
    make("straight", kBrokerUser, 0755);
    ASSERT_EQ(symlink("../alices/./own", at("straight/link").c_str()), 0);
    place_ = at("straight/link/dibs.sock");
    EXPECT_EQ(lchown(at("straight/link").c_str(), kBrokerUser, kBrokerUser), 0);
    expect_no_place(alices + " belongs to user " + std::to_string(kAlice));
    make("sticky", kBrokerUser, 01777);
    ASSERT_EQ(symlink(at("straight").c_str(), at("sticky/link").c_str()), 0);
    EXPECT_EQ(lchown(at("sticky/link").c_str(), kAlice, kAlice), 0);
    place_ = at("sticky/link/dibs.sock");
    expect_no_place(at("sticky/link") + " belongs to user " + std::to_string(kAlice));
    EXPECT_EQ(lchown(at("sticky/link").c_str(), kBrokerUser, kBrokerUser), 0);
    EXPECT_EQ(start_as(kBrokerUser), -1) << said();
    ASSERT_EQ(symlink("round", at("round").c_str()), 0);
    EXPECT_EQ(lchown(at("round").c_str(), kBrokerUser, kBrokerUser), 0);
    place_ = at("round/dibs.sock");
    expect_no_place(at("round") + ": too many links");
}

// Where anybody may make a folder, it is the broker's that counts, or somebody else's.
TEST_F(MultiUser, LooksOnceItsFolderIsThere) {
    const std::string sticky = make("sticky", kBrokerUser, 01777);
    place_ = sticky + "/new/dibs.sock";
    EXPECT_EQ(start_as(kBrokerUser), -1) << said();
    struct stat about = {};
    ASSERT_EQ(stat((sticky + "/new").c_str(), &about), 0);
    EXPECT_EQ(about.st_uid, kBrokerUser);
    make("sticky/taken", kAlice, 0755);
    place_ = sticky + "/taken/dibs.sock";
    expect_no_place(sticky + "/taken belongs to user " + std::to_string(kAlice));
}

// Whatever is missing somebody else may have taken away, and bring again.
TEST_F(MultiUser, RefusesAWayThatIsNotThere) {
    make("sticky", kBrokerUser, 01777);
    place_ = at("sticky/a/b/dibs.sock");
    expect_no_place(at("sticky/a") + ": No such file or directory");
}

// A name in it is whoever's takes it first, as often as the broker is away.
TEST_F(MultiUser, RefusesAFolderInWhichEverybodyTakesNames) {
    place_ = make("sticky", kBrokerUser, 01777) + "/dibs.sock";
    expect_no_place(at("sticky") + " can be written by its group or everybody (mode 01777)");
}

TEST_F(MultiUser, LooksAtThePlaceOfASocketThatIsLent) {
    const std::string alices = make("alices", kAlice, 0755);
    place_ = alices + "/dibs.sock";
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    place_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    lent_ = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    ASSERT_EQ(bind(lent_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(listen(lent_, 1), 0);
    const std::string lent = place_;
    place_.clear();  // as configured, which would do
    EXPECT_EQ(start_as(kBrokerUser), 2);
    EXPECT_EQ(said(),
              "dibsd: --multi-user: others can put a socket of theirs at " + lent + ": " + alices +
                  " belongs to user " + std::to_string(kAlice) + "\n");
    close(lent_);
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

// A broker that has just died, and whose parent has not waited for it yet.
TEST_F(MultiUser, ServesBesideAProcessOfItsUidThatIsDead) {
    const Child dead([&](const Child& self) {
        become_user(kBrokerUser, kBrokerUser);
        self.mark('d');
        _exit(0);
    });
    ASSERT_EQ(dead.marked(), 'd');
    siginfo_t end = {};  // it stays as it is
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(dead.pid()), &end, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(start_as(kBrokerUser, [] {}), -1) << said();
}

// Hardened, so that its program cannot be seen.
TEST_F(MultiUser, ServesBesideABrokerOfItsUidThatLivesOn) {
    const Child broker([&](const Child& self) {
        become_user(kBrokerUser, kBrokerUser);
        prctl(PR_SET_NAME, "dibsd-broker");
        prctl(PR_SET_DUMPABLE, 0);
        self.mark('b');
        for (;;)
            pause();
    });
    ASSERT_EQ(broker.marked(), 'b');
    EXPECT_EQ(start_as(kBrokerUser, [] {}), -1) << said();
}

// It can go back to it.
TEST_F(MultiUser, RefusesAUidThatAnotherProgramHasSaved) {
    const Child other([&](const Child&) {
        if (setresuid(kBrokerUser + 1, kBrokerUser + 1, kBrokerUser) != 0) _exit(2);
    });
    ASSERT_EQ(other.marked(), 'e');
    EXPECT_EQ(start_as(kBrokerUser), 2);
    EXPECT_NE(said().find("process " + std::to_string(other.pid())), std::string::npos) << said();
}

// As that user's thread alone, the first thread is another's: the system call is one thread's.
TEST_F(MultiUser, RefusesAUidThatAThreadOfAnotherProgramRunsAs) {
    const Child other([&](const Child& self) {
        std::thread([&] {
            if (syscall(SYS_setresuid, kBrokerUser, kBrokerUser, kBrokerUser) != 0) _exit(2);
            self.mark('t');
            for (;;)
                pause();
        }).join();
    });
    ASSERT_EQ(other.marked(), 't');
    EXPECT_EQ(start_as(kBrokerUser), 2);
    EXPECT_NE(said().find("process " + std::to_string(other.pid())), std::string::npos) << said();
}

// What the next broker is would be theirs to say.
TEST_F(MultiUser, RefusesAProgramThatOthersCanChange) {
    const auto expect_refusal = [&](const std::string& why) {
        EXPECT_EQ(start_as(kBrokerUser), 2);
        EXPECT_EQ(said(),
                  "dibsd: --multi-user: others can change the program that the next broker is, " +
                      program_ + ": " + why + "\n");
    };
    const std::string other = std::to_string(kBrokerUser + 1);
    ASSERT_EQ(chown(program_.c_str(), kBrokerUser + 1, 0), 0);
    expect_refusal(program_ + " belongs to user " + other);
    ASSERT_EQ(chown(program_.c_str(), 0, 0), 0);
    ASSERT_EQ(chown(bin_.path().c_str(), kBrokerUser + 1, 0), 0);
    expect_refusal(bin_.path() + " belongs to user " + other);
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
