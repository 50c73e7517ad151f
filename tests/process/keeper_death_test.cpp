// tests/process/keeper_death_test.cpp -- a keeper's death is told once.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/process/kept_dibsd.hpp"
#include "tests/process/proc_text.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {
namespace {

// All that the process has opened of its own pidfd, as its child has them between fork and exec.
std::vector<shm::Descriptor> own_pidfds_of(pid_t pid) {
    const shm::Descriptor process = pidfd_of(pid);
    const std::string wanted = "\nPid:\t" + std::to_string(pid) + "\n";
    std::vector<shm::Descriptor> copies;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
        const std::string number = entry.path().filename();
        if (proc_text(pid, "fdinfo/" + number).find(wanted) == std::string::npos) continue;
        copies.emplace_back(
            static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), std::stoi(number), 0)));
    }
    return copies;
}

// Keepers of that socket that a broker has started.
size_t keepers_of(const std::string& socket) {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const std::string words = proc_text(std::stoi(name), "cmdline");
        const bool is_ours = words.find(socket) != std::string::npos;
        count += is_ours && words.starts_with(std::string("dibsd\0--keep\0", 13)) ? 1 : 0;
    }
    return count;
}

TEST(KeeperDeath, IsToldOnceThoughItsPidfdLivesOn) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kCounted);
    const pid_t keeper = dibsd.keeper();
    (void)dibsd.standby();
    const std::vector<shm::Descriptor> copies = own_pidfds_of(keeper);
    ASSERT_FALSE(copies.empty());
    if (!copies.front().valid()) GTEST_SKIP() << "pidfd_getfd: errno " << errno;
    kill_and_await(keeper, SIGKILL);
    (void)dibsd.keeper(keeper);
    // The thread that watches the keeper lets them in: it has looked for deaths as often.
    for (int callers = 0; callers < 8; ++callers)
        const RawClient client(dibsd.socket());
    EXPECT_EQ(keepers_of(dibsd.socket()), 1U);
    dibsd.kill_broker();
    RawClient client(dibsd.socket());
    client.claim(1, 0, 1);
    EXPECT_EQ(client.wait()->outcome, shm::Outcome::kGranted);
}

}  // namespace
}  // namespace dibs::test
