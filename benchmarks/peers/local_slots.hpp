// benchmarks/peers/local_slots.hpp -- slots without a server: pipe, mutex, semaphores, files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <vector>

#include "benchmarks/peer.hpp"
#include "benchmarks/scratch_folder.hpp"
#include "benchmarks/slot_source.hpp"
#include "shm/descriptor.hpp"

namespace dibs::bench {

// A pipe with one byte per slot, as GNU make's jobserver has it.
class PipeSlots final : public SlotSource {
  public:
    explicit PipeSlots(uint32_t slots);
    void attach(uint32_t /*worker*/) override {}
    void claim() override;
    void release() override;

  private:
    shm::Descriptor out_;
    shm::Descriptor in_;
};

// A list of free slots in shared memory, behind a robust mutex; claims wait for a condition
// variable.
class MutexSlots final : public SlotSource {
  public:
    explicit MutexSlots(uint32_t slots);
    void attach(uint32_t /*worker*/) override {}
    void claim() override;
    void release() override;

  private:
    struct FreeList {
        pthread_mutex_t mutex;
        pthread_cond_t freed;
        uint32_t count;
        uint32_t slots[];
    };
    void lock();

    SharedMemory memory_;
    FreeList* free_;
    uint32_t held_ = 0;
};

// The number of free slots: a semaphore does not say which of them its caller has.
class PosixSemaphoreSlots final : public SlotSource {
  public:
    explicit PosixSemaphoreSlots(uint32_t slots);
    void attach(uint32_t /*worker*/) override {}
    void claim() override;
    void release() override;

  private:
    SharedMemory memory_;
};

// The same in the kernel, which gives back what a process held that has died (SEM_UNDO).
class SystemVSemaphoreSlots final : public SlotSource {
  public:
    explicit SystemVSemaphoreSlots(uint32_t slots);
    ~SystemVSemaphoreSlots() override;
    void attach(uint32_t /*worker*/) override {}
    void claim() override { add(-1); }
    void release() override { add(1); }

  private:
    void add(short count) const;

    int set_;
};

// One file per slot. A worker tries to lock each of them, beginning with its own. If all are locked
// it waits for its own: flock() cannot wait for any of several.
class FlockSlots final : public SlotSource {
  public:
    explicit FlockSlots(uint32_t slots) : slots_(slots) {}
    void attach(uint32_t worker) override;
    void claim() override;
    void release() override;

  private:
    ScratchFolder folder_;
    uint32_t slots_;
    std::vector<int> files_;  // in the order in which this worker tries them
    int held_ = -1;
};

}  // namespace dibs::bench
