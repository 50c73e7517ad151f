// tests/broker/admission/listener_test.cpp -- the broker's name in the file system: taken and left.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admission/listener.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/process/dibsd.hpp"

namespace dibs::test {
namespace {

bool exists(const std::string& path) {
    return access(path.c_str(), F_OK) == 0;
}

TEST(Listener, TakesItsNameAndItsLockAway) {
    const Folder folder;
    const std::string path = folder.path() + "/s";
    {
        const Listener listener(path, 0600);
        EXPECT_TRUE(exists(path));
        struct stat about = {};
        ASSERT_EQ(stat((path + ".lock").c_str(), &about), 0);
        EXPECT_EQ(about.st_mode & 0777, 0600U);
    }
    EXPECT_FALSE(exists(path));
    EXPECT_FALSE(exists(path + ".lock"));
}

// Who has waited for the lock of a broker that went holds a file without a name.
TEST(Listener, TakesTheLockThatLiesThereByThen) {
    const Folder folder;
    const std::string path = folder.path() + "/s";
    auto first = std::make_unique<Listener>(path, 0600);
    const int old = open((path + ".lock").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(old, 0);
    first.reset();
    ASSERT_EQ(flock(old, LOCK_EX), 0);  // nobody else's way
    const Listener second(path, 0600);
    EXPECT_TRUE(exists(path + ".lock"));
    EXPECT_THROW(Listener(path, 0600), std::runtime_error);
    close(old);
}

// A broker that ends without having stopped in order has a successor, which is found by the name.
TEST(Listener, LeavesItsNameToASuccessor) {
    const Folder folder;
    const std::string path = folder.path() + "/s";
    auto first = std::make_unique<Listener>(path, 0600);
    const uint64_t inode = first->inode();
    shm::Descriptor copy(fcntl(first->fd(), F_DUPFD_CLOEXEC, 0));
    first->leave_name(true);
    first.reset();
    EXPECT_TRUE(exists(path));
    Listener next(std::move(copy), inode);
    EXPECT_EQ(next.inode(), inode);
    next.leave_name(false);
    next.close();
    EXPECT_FALSE(exists(path));
    EXPECT_FALSE(exists(path + ".lock"));
}

// What lies there when it is inherited may be another broker's by then.
TEST(Listener, LeavesWhatTookItsPlaceBeforeItWasInherited) {
    const Folder folder;
    const std::string path = folder.path() + "/s";
    auto first = std::make_unique<Listener>(path, 0600);
    const uint64_t inode = first->inode();
    shm::Descriptor copy(fcntl(first->fd(), F_DUPFD_CLOEXEC, 0));
    first->leave_name(true);
    first.reset();
    ASSERT_EQ(unlink(path.c_str()), 0);
    const Listener second(path, 0600);
    {
        Listener next(std::move(copy), inode);
        next.leave_name(false);
    }
    EXPECT_TRUE(exists(path));
    EXPECT_TRUE(exists(path + ".lock"));
}

TEST(Listener, DoesNotTakeANameThatSomebodyListensOn) {
    const Folder folder;
    const Listener first(folder.path() + "/s", 0600);
    EXPECT_THROW(Listener(folder.path() + "/s", 0600), std::runtime_error);
}

TEST(Listener, DoesNotTakeTheNameOfAnotherProgramsSocket) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
        const Folder folder;
        const std::string path = folder.path() + "/s";
        struct sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof(address.sun_path) - 1);
        shm::Descriptor other(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
        ASSERT_EQ(bind(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
                  0);
        if (type == SOCK_STREAM) {
            ASSERT_EQ(listen(other.get(), 1), 0);
        }
        EXPECT_THROW(Listener(path, 0600), std::runtime_error);
        EXPECT_TRUE(exists(path));
        EXPECT_FALSE(exists(path + ".lock"));
        other.reset();
        const Listener listener(path, 0600);  // nobody's any more
    }
}

// What is beside a socket under that name may be anything.
TEST(Listener, TakesNoFileForItsLockThatSaysSomething) {
    const Folder folder;
    const std::string lock = folder.write("s.lock", "pins");
    EXPECT_THROW(Listener(folder.path() + "/s", 0600), std::runtime_error);
    EXPECT_EQ(std::filesystem::file_size(lock), 4U);
    ASSERT_EQ(unlink(lock.c_str()), 0);
    ASSERT_EQ(mkfifo(lock.c_str(), 0600), 0);
    EXPECT_THROW(Listener(folder.path() + "/s", 0600), std::runtime_error);
    EXPECT_TRUE(exists(lock));
}

TEST(Listener, LeavesAnOrdinaryFileAndNoLockBesideIt) {
    const Folder folder;
    const std::string path = folder.write("s", "text");
    EXPECT_THROW(Listener(path, 0600), std::runtime_error);
    EXPECT_TRUE(exists(path));
    EXPECT_FALSE(exists(path + ".lock"));
}

TEST(Listener, LeavesTheNameOfWhoeverTookItsPlace) {
    const Folder folder;
    const std::string path = folder.path() + "/s";
    auto first = std::make_unique<Listener>(path, 0600);
    ASSERT_EQ(unlink(path.c_str()), 0);  // by some administrator
    const Listener second(path, 0600);
    first.reset();
    EXPECT_TRUE(exists(path));
}

// What is served does not hang on the name: a successor goes on without it.
TEST(Listener, IsInheritedWhereItsFolderIsGone) {
    const Folder folder;
    const std::string path = folder.path() + "/s";
    const Listener first(path, 0600);
    shm::Descriptor copy(fcntl(first.fd(), F_DUPFD_CLOEXEC, 0));
    std::filesystem::remove_all(folder.path());
    {
        const Listener inherited(std::move(copy), 0);
        EXPECT_EQ(inherited.path(), path);
    }
    EXPECT_FALSE(exists(folder.path()));
}

}  // namespace
}  // namespace dibs::test
