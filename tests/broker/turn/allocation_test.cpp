// tests/broker/turn/allocation_test.cpp -- a turn takes no memory: all of it is there from the
// start.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "tests/broker/bench.hpp"

namespace {

thread_local uint64_t allocations = 0;

void* counted(size_t size) {
    ++allocations;
    void* memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

void* counted_aligned(size_t size, std::align_val_t alignment) {
    ++allocations;
    void* memory = nullptr;
    if (posix_memalign(&memory, static_cast<size_t>(alignment), size) != 0) throw std::bad_alloc();
    return memory;
}

}  // namespace

void* operator new(size_t size) {
    return counted(size);
}
void* operator new[](size_t size) {
    return counted(size);
}
void* operator new(size_t size, std::align_val_t alignment) {
    return counted_aligned(size, alignment);
}
void* operator new[](size_t size, std::align_val_t alignment) {
    return counted_aligned(size, alignment);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
    std::free(memory);
}

namespace dibs::test {
namespace {

TEST(Allocations, AreCounted) {
    const uint64_t before = allocations;
    delete new int(3);
    EXPECT_EQ(allocations, before + 1);
}

TEST(Allocations, DoNotHappenFromClaimToRelease) {
    Bench bench;
    bench.pool({.name = "tokens", .slots = 8});
    Session& session = bench.open();
    shm::Completion granted[4];
    uint64_t before = 0;
    for (int round = 0; round < 300; ++round) {
        if (round == 0) (void)bench.turn();
        before = round == 100 ? allocations : before;
        for (uint16_t tag = 0; tag < 4; ++tag)
            bench.push(session, claim(tag, 0, 2));
        bench.push(session, claim(9, 0, 1));  // waits, and is cancelled
        bench.turn();
        for (shm::Completion& entry : granted)
            entry = bench.next(session).value();
        shm::Submission cancel;
        cancel.op = shm::Op::kCancel;
        cancel.tag = 9;
        bench.push(session, cancel);
        for (const shm::Completion& entry : granted)
            bench.push(session,
                       word(shm::Op::kRelease, entry.id, entry.fence, shm::OpFlag::kQuiet));
        bench.now += 1000;
        bench.turn();
        while (bench.next(session)) {
        }
        bench.release_read(session);
    }
    EXPECT_EQ(allocations, before);
}

TEST(Allocations, DoNotHappenFromAssignmentToDone) {
    Bench bench;
    bench.pool({.name = "web", .kind = shm::PoolKind::kWorker, .payload_max = 64});
    Session& worker = bench.open();
    Session& client = bench.open();
    shm::Submission announce;
    announce.op = shm::Op::kAnnounce;
    announce.flags = shm::OpFlag::kThenReady;
    bench.push(worker, announce);
    bench.turn();
    const uint64_t slot = bench.next(worker)->id;
    uint64_t before = 0;
    for (int round = 0; round < 300; ++round) {
        before = round == 100 ? allocations : before;
        bench.push(client, claim(1));
        bench.turn();
        const shm::Completion assigned = bench.next(worker).value();
        bench.push(worker, word(shm::Op::kConfirm, slot, assigned.fence, shm::OpFlag::kQuiet));
        bench.push(worker,
                   word(shm::Op::kDone,
                        slot,
                        assigned.fence,
                        shm::OpFlag::kQuiet | shm::OpFlag::kThenReady));
        bench.turn();
        ASSERT_EQ(bench.next(client)->outcome, shm::Outcome::kGranted);
        bench.release_read(client);
        bench.release_read(worker);
        bench.now += 1000;
    }
    EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace dibs::test
