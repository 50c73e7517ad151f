// tests/process/user.hpp -- other users, for tests that have the right to be them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace dibs::test {

// Numbers that no account of this host should have.
inline constexpr uint32_t kAlice = 61001;
inline constexpr uint32_t kBob = 61002;
// A user of this run's own: beside another process of its user a broker serves nobody else.
inline const uint32_t kBrokerUser = 20000 + static_cast<uint32_t>(getpid()) % 40000;

#define DIBS_NEEDS_ROOT() \
    if (geteuid() != 0) GTEST_SKIP() << "only root can be another user"

// In a child: from here on, and for good, another user.
inline void become_user(uint32_t uid, uint32_t gid, const std::vector<gid_t>& groups = {}) {
    if (setgroups(groups.size(), groups.data()) != 0 || setresgid(gid, gid, gid) != 0 ||
        setresuid(uid, uid, uid) != 0) {
        _exit(2);
    }
}

// Lets every user into a folder that mkdtemp made.
inline void open_folder(const std::string& path) {
    ASSERT_EQ(chmod(path.c_str(), 0755), 0);
}

}  // namespace dibs::test
