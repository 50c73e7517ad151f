// benchmarks/peers/local_slots.cpp -- slots without a server: pipe, mutex, semaphores, files.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/local_slots.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace dibs::bench {

namespace {

[[noreturn]] void fail(int error, const char* what) {
    throw std::system_error(error, std::generic_category(), what);
}

void check(bool done, const char* what) {
    if (!done) fail(errno, what);
}

}  // namespace

PipeSlots::PipeSlots(uint32_t slots) {
    int ends[2];
    check(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    out_ = shm::Descriptor(ends[0]);
    in_ = shm::Descriptor(ends[1]);
    for (uint32_t i = 0; i < slots; ++i)
        release();
}

void PipeSlots::claim() {
    char token = 0;
    check(read(out_.get(), &token, 1) == 1, "read from the pipe");
}

void PipeSlots::release() {
    check(write(in_.get(), "+", 1) == 1, "write to the pipe");
}

MutexSlots::MutexSlots(uint32_t slots)
    : memory_(sizeof(FreeList) + slots * sizeof(uint32_t)), free_(memory_.at<FreeList>(0)) {
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&free_->mutex, &robust);
    pthread_mutexattr_destroy(&robust);
    pthread_condattr_t shared;
    pthread_condattr_init(&shared);
    pthread_condattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&free_->freed, &shared);
    pthread_condattr_destroy(&shared);
    for (uint32_t i = 0; i < slots; ++i)
        free_->slots[free_->count++] = i;
}

void MutexSlots::lock() {
    int error = pthread_mutex_lock(&free_->mutex);
    if (error == EOWNERDEAD) error = pthread_mutex_consistent(&free_->mutex);
    if (error != 0) fail(error, "pthread_mutex_lock");
}

void MutexSlots::claim() {
    lock();
    while (free_->count == 0) {
        const int error = pthread_cond_wait(&free_->freed, &free_->mutex);
        if (error != 0) fail(error, "pthread_cond_wait");
    }
    held_ = free_->slots[--free_->count];
    pthread_mutex_unlock(&free_->mutex);
}

void MutexSlots::release() {
    lock();
    free_->slots[free_->count++] = held_;
    pthread_cond_signal(&free_->freed);
    pthread_mutex_unlock(&free_->mutex);
}

PosixSemaphoreSlots::PosixSemaphoreSlots(uint32_t slots) : memory_(sizeof(sem_t)) {
    check(sem_init(memory_.at<sem_t>(0), 1, slots) == 0, "sem_init");
}

void PosixSemaphoreSlots::claim() {
    check(sem_wait(memory_.at<sem_t>(0)) == 0, "sem_wait");
}

void PosixSemaphoreSlots::release() {
    check(sem_post(memory_.at<sem_t>(0)) == 0, "sem_post");
}

SystemVSemaphoreSlots::SystemVSemaphoreSlots(uint32_t slots) : set_(semget(IPC_PRIVATE, 1, 0600)) {
    check(set_ >= 0, "semget");
    check(semctl(set_, 0, SETVAL, static_cast<int>(slots)) == 0, "semctl");
}

SystemVSemaphoreSlots::~SystemVSemaphoreSlots() {
    (void)semctl(set_, 0, IPC_RMID);
}

void SystemVSemaphoreSlots::add(short count) const {
    sembuf change = {0, count, SEM_UNDO};
    check(semop(set_, &change, 1) == 0, "semop");
}

void FlockSlots::attach(uint32_t worker) {
    for (uint32_t i = 0; i < slots_; ++i) {
        const std::string name = folder_.file(std::to_string((worker + i) % slots_));
        files_.push_back(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        check(files_.back() >= 0, name.c_str());
    }
}

void FlockSlots::claim() {
    for (const int file : files_) {
        held_ = file;
        if (flock(file, LOCK_EX | LOCK_NB) == 0) return;
        check(errno == EWOULDBLOCK, "flock");
    }
    held_ = files_.front();
    check(flock(held_, LOCK_EX) == 0, "flock");
}

void FlockSlots::release() {
    check(flock(held_, LOCK_UN) == 0, "flock");
}

}  // namespace dibs::bench
