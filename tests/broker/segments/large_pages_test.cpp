// tests/broker/segments/large_pages_test.cpp -- STATE in large pages: where a successor finds them,
// and that nothing else about a segment is different.
// SPDX-License-Identifier: Apache-2.0
#include "shm/large_pages.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "broker/segments/mapping.hpp"
#include "broker/segments/segments.hpp"
#include "shm/memfd.hpp"

namespace dibs::test {
namespace {

constexpr uint64_t kOdd = 3 * shm::kLargePage + 4096 + 64;  // no whole number of any pages

core::Limits large() {
    core::Limits limits;
    limits.slots = 20'000;
    limits.leases = 20'000;
    return limits;
}

// KiB of the mapping that begins there which the kernel has mapped in large pages.
uint64_t large_kib(const void* begin) {
    std::ostringstream address;
    address << std::hex << reinterpret_cast<uintptr_t>(begin) << '-';
    std::ifstream maps("/proc/self/smaps");
    bool found = false;
    for (std::string line; std::getline(maps, line);) {
        if (line.rfind(address.str(), 0) == 0) found = true;
        if (!found || line.rfind("ShmemPmdMapped:", 0) != 0) continue;
        return std::stoull(line.substr(line.find(':') + 1));
    }
    return 0;
}

size_t mappings() {
    std::ifstream maps("/proc/self/maps");
    return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

// Whether this kernel gives one to whoever asks for it, asked in the plainest way.
bool kernel_has_them() {
    const shm::Descriptor memory(memfd_create("probe", MFD_CLOEXEC));
    if (ftruncate(memory.get(), static_cast<off_t>(shm::kLargePage)) != 0) return false;
    std::byte* const at = shm::reserve_aligned(shm::kLargePage);
    constexpr int kBoth = PROT_READ | PROT_WRITE;
    constexpr int kCollapse = 25;
    if (mmap(at, shm::kLargePage, kBoth, MAP_SHARED | MAP_FIXED, memory.get(), 0) == MAP_FAILED) {
        return false;
    }
    *at = std::byte{1};
    const bool has = madvise(at, shm::kLargePage, kCollapse) == 0;
    munmap(at, shm::kLargePage);
    return has;
}

TEST(LargePages, AreWhereAMappingBeginsAndNothingOfTheRoomAroundItStays) {
    const shm::Descriptor memory = shm::make_memfd("odd", kOdd);
    const size_t before = mappings();
    {
        const Mapping mapping(memory.get(), kOdd);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(mapping.bytes().data()) % shm::kLargePage, 0U);
        EXPECT_EQ(mapping.bytes().size(), kOdd);
        EXPECT_EQ(mappings(), before + 1);
    }
    EXPECT_EQ(mappings(), before);
}

TEST(LargePages, LeaveASegmentZeroedWholeAndSealed) {
    const shm::Descriptor memory = shm::make_memfd("odd", kOdd, shm::Pages::kLarge);
    struct stat about = {};
    ASSERT_EQ(fstat(memory.get(), &about), 0);
    EXPECT_EQ(static_cast<uint64_t>(about.st_size), kOdd);
    EXPECT_GE(static_cast<uint64_t>(about.st_blocks) * 512, kOdd);
    EXPECT_EQ(about.st_mode & 0777U, 0600U);
    EXPECT_EQ(fcntl(memory.get(), F_GET_SEALS), F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    const Mapping mapping(memory.get(), kOdd);
    EXPECT_TRUE(std::ranges::all_of(mapping.bytes(), [](std::byte b) { return b == std::byte{}; }));
}

TEST(LargePages, HoldAStateForItsMakerAndForASuccessor) {
    if (!kernel_has_them()) GTEST_SKIP() << "this kernel gives nobody large pages";
    StateSegment state({}, large());
    const uint64_t wanted = state.bytes().size() / shm::kLargePage * shm::kLargePage / 1024;
    const uint64_t given = large_kib(state.bytes().data());
    if (given < wanted && !kernel_has_them()) GTEST_SKIP() << "this machine has no more of them";
    EXPECT_GT(given, 0U);
    EXPECT_LE(given, wanted);
    const StateSegment successor(shm::Descriptor(fcntl(state.fd(), F_DUPFD_CLOEXEC, 0)), large());
    EXPECT_EQ(large_kib(successor.bytes().data()), given);
    state.set_clean(true);
    EXPECT_EQ(reinterpret_cast<const shm::StateHead*>(successor.bytes().data())->clean, 1U);
}

}  // namespace
}  // namespace dibs::test
