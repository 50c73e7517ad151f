// tests/broker/config/config_copy_test.cpp -- what a successor makes of what was in force.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "broker/admission/policy.hpp"
#include "shm/memfd.hpp"

namespace dibs::test {
namespace {

Credentials somebody(uint32_t uid) {
    Credentials peer;
    peer.uid = uid;
    peer.gid = uid;
    return peer;
}

TEST(ConfigCopy, HoldsAnyTextAndCannotBeWritten) {
    for (const std::string& text :
         {std::string(), std::string("spin = \"1us\"\n"), std::string(100'000, '#')}) {
        const shm::Descriptor copy = copy_config(text);
        EXPECT_EQ(text_of_copy(copy.get()), text);
        EXPECT_EQ(write(copy.get(), "x", 1), -1);
        EXPECT_EQ(errno, EPERM);
        const Config config = config_as_read_before("dibsd.toml", copy);
        EXPECT_EQ(config.text, text);
        EXPECT_EQ(config.file, "dibsd.toml");
    }
}

// The same text may be understood no more: a user has gone. The other rules hold all the same.
TEST(ConfigCopy, LeavesOutWhatIsNotUnderstoodByNow) {
    const Config config = config_as_read_before(
        "dibsd.toml",
        copy_config("spin = \"7us\"\n"
                    "[[policy]]\nuser = \"nobody-of-this-name\"\npools = [\"a\", \"b\"]\n"
                    "[[policy]]\nuser = 61001\npools = [\"a\"]\n"
                    "[[policy]]\ndefault = true\npools = [\"b\"]\n"));
    EXPECT_EQ(config.spin_ns, 7000U);
    EXPECT_TRUE(config.policy->of(somebody(61001)).may_claim("a"));
    EXPECT_FALSE(config.policy->of(somebody(61001)).may_claim("b"));
    EXPECT_FALSE(config.policy->of(somebody(61002)).may_claim("a"));
    EXPECT_TRUE(config.policy->of(somebody(61002)).may_claim("b"));
}

TEST(ConfigCopy, IsNotNeeded) {
    const Config config = config_as_read_before("dibsd.toml", shm::Descriptor());
    EXPECT_FALSE(config.text);
    EXPECT_EQ(config.spin_ns, Config().spin_ns);
}

TEST(ConfigCopy, ThatCannotBeReadIsNone) {
    const shm::Descriptor memfd = shm::make_memfd("dibs-config", 64);
    const std::string path = "/proc/self/fd/" + std::to_string(memfd.get());
    const shm::Descriptor write_only(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_TRUE(write_only.valid());
    EXPECT_FALSE(config_as_read_before("dibsd.toml", write_only).text);
}

}  // namespace
}  // namespace dibs::test
