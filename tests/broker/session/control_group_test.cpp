// tests/broker/session/control_group_test.cpp -- processes of a group, read from any folder.
// SPDX-License-Identifier: Apache-2.0
#include "broker/session/control_group.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace dibs::test {
namespace {

namespace fs = std::filesystem;
using Pids = std::vector<uint32_t>;

class ControlGroupTest : public testing::Test {
  protected:
    ControlGroupTest() {
        std::string name = fs::temp_directory_path() / "dibs-groups-XXXXXX";
        root = mkdtemp(name.data());
    }
    ~ControlGroupTest() override { fs::remove_all(root); }

    static void put(const fs::path& group, const std::string& pids) {
        fs::create_directories(group);
        std::ofstream(group / "cgroup.procs") << pids;
    }
    [[nodiscard]] GroupProcesses read(size_t most = 100) const {
        return processes_of_group(open_group(root), most);
    }

    fs::path root;
};

TEST_F(ControlGroupTest, HasTheProcessesOfAllBelowIt) {
    put(root, "12\n13\n");
    put(root / "a" / "b", "14\n");
    const GroupProcesses found = read();
    EXPECT_EQ(found.pids, (Pids{12, 13, 14}));
    EXPECT_TRUE(found.all);
}

TEST_F(ControlGroupTest, IsReadByItsFolderWhateverIsUnderItsPathByNow) {
    put(root / "a", "12\n");
    const shm::Descriptor group = open_group(root / "a");
    fs::rename(root / "a", root / "b");
    put(root / "a", "13\n");
    EXPECT_EQ(processes_of_group(group, 100).pids, (Pids{12}));
}

TEST_F(ControlGroupTest, SaysIfThereIsMoreThanIsLookedAt) {
    put(root, "12\n13\n");
    EXPECT_FALSE(read(2).all);
    EXPECT_TRUE(read(3).all);
    for (int i = 0; i < 255; ++i)
        put(root / std::to_string(i), "");
    EXPECT_TRUE(read().all);
    put(root / "one more", "");
    EXPECT_FALSE(read().all);
}

TEST_F(ControlGroupTest, SaysIfItIsTooDeep) {
    fs::path deepest = root;
    for (int i = 0; i < 16; ++i)
        deepest /= "a";
    put(deepest, "12\n");
    EXPECT_EQ(read().pids, (Pids{12}));
    EXPECT_TRUE(read().all);
    put(deepest / "a", "13\n");
    EXPECT_FALSE(read().all);
}

TEST_F(ControlGroupTest, SaysIfItCannotBeRead) {
    fs::create_directory(root / "cgroup.procs");
    EXPECT_FALSE(read().all);
    EXPECT_FALSE(processes_of_group(open_group(root / "none"), 100).all);
}

TEST_F(ControlGroupTest, IsEmptyOnlyIfThatCanBeRead) {
    const fs::path file = root / "cgroup.events";
    const auto open_file = [&] { return shm::Descriptor(open(file.c_str(), O_RDONLY)); };
    std::ofstream(file) << "populated 0\nfrozen 0\n";
    EXPECT_TRUE(is_empty_group(open_file()));
    std::ofstream(file) << "populated 1\nfrozen 0\n";
    EXPECT_FALSE(is_empty_group(open_file()));
    EXPECT_FALSE(is_empty_group(shm::Descriptor()));
    EXPECT_FALSE(is_empty_group(open_group(root)));
}

}  // namespace
}  // namespace dibs::test
