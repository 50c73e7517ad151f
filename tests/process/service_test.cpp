// tests/process/service_test.cpp -- what a service manager hears of a keeper, and of the next one.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <string>

#include "tests/process/kept_dibsd.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {
namespace {

// What a service manager hears next; descriptors that come with it are closed.
std::string hear(int manager) {
    char text[256] = {};
    return {text, static_cast<size_t>(recv(manager, text, sizeof(text), 0))};
}

shm::Descriptor bound_socket(const std::string& path, struct sockaddr_un* address) {
    shm::Descriptor manager(socket(AF_UNIX, SOCK_DGRAM, 0));
    address->sun_family = AF_UNIX;
    path.copy(address->sun_path, sizeof(address->sun_path));
    EXPECT_EQ(bind(manager.get(), reinterpret_cast<struct sockaddr*>(address), sizeof(*address)),
              0);
    return manager;
}

// Until nobody has room there: a sender has bounds of its own, so not even a new one.
void fill(const struct sockaddr_un& address) {
    for (bool any = true; any;) {
        const shm::Descriptor sender(socket(AF_UNIX, SOCK_DGRAM, 0));
        any = false;
        while (sendto(sender.get(),
                      "BURST=1",
                      7,
                      MSG_DONTWAIT,
                      reinterpret_cast<const struct sockaddr*>(&address),
                      sizeof(address)) == 7)
            any = true;
        ASSERT_EQ(errno, EAGAIN);
    }
}

TEST(Service, IsToldThatItIsReadyOnceItsManagerHasRoom) {
    const Folder folder;
    const std::string path = folder.path() + "/notify";
    struct sockaddr_un address = {};
    const shm::Descriptor manager = bound_socket(path, &address);
    fill(address);
    const KeptDibsd dibsd(folder, kCounted, {"NOTIFY_SOCKET=" + path});
    EXPECT_TRUE(RawClient(dibsd.socket()).attached());  // nobody waits for the manager
    std::string words;
    do {
        words = hear(manager.get());
    } while (words == "BURST=1" || words.rfind("FDSTORE", 0) == 0);
    EXPECT_EQ(words, "READY=1\nMAINPID=" + std::to_string(dibsd.keeper()));
}

TEST(Service, IsToldThatItIsReadyAndStopping) {
    const Folder folder;
    const std::string path = folder.path() + "/notify";
    struct sockaddr_un address = {};
    const shm::Descriptor manager = bound_socket(path, &address);
    const auto told = [&] {
        for (;;) {
            const std::string words = hear(manager.get());
            if (words.rfind("FDSTORE", 0) != 0) return words;
        }
    };
    KeptDibsd dibsd(folder, kCounted, {"NOTIFY_SOCKET=" + path});
    const std::string pid = std::to_string(dibsd.keeper());
    EXPECT_EQ(told(), "READY=1\nMAINPID=" + pid);
    kill_and_await(dibsd.keeper(), SIGKILL);
    EXPECT_EQ(told(), "READY=1\nMAINPID=" + std::to_string(dibsd.keeper(std::stoi(pid))));
    kill(dibsd.keeper(std::stoi(pid)), SIGTERM);
    EXPECT_EQ(told(), "STOPPING=1");
}

}  // namespace
}  // namespace dibs::test
