// demo/witness.cpp -- maps and updates the witness's page.
// SPDX-License-Identifier: Apache-2.0
#include "demo/witness.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace dibs::ctl::demo {

Witness Witness::create(size_t slots) {
    const int fd = memfd_create("dibs-demo-witness", MFD_CLOEXEC);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
    if (ftruncate(fd, static_cast<off_t>(slots * sizeof(WitnessCell))) != 0) {
        const int error = errno;
        close(fd);
        throw std::system_error(error, std::generic_category(), "ftruncate of the witness page");
    }
    return {fd, slots};
}

Witness Witness::attach(int fd, size_t slots) {
    return {fd, slots};
}

Witness::Witness(int fd, size_t slots) : fd_(fd) {
    // A fresh memfd reads as zeroes: every cell is free without being written.
    void* memory =
        mmap(nullptr, slots * sizeof(WitnessCell), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        const int error = errno;
        close(fd);
        throw std::system_error(error, std::generic_category(), "mmap of the witness page");
    }
    cells_ = {static_cast<WitnessCell*>(memory), slots};
}

Witness::Witness(Witness&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), cells_(std::exchange(other.cells_, {})) {}

Witness::~Witness() {
    if (!cells_.empty()) munmap(cells_.data(), cells_.size_bytes());
    if (fd_ >= 0) close(fd_);
}

void Witness::start_use(size_t slot, uint64_t claim) {
    WitnessCell& cell = cells_[slot];
    uint64_t nobody = 0;
    if (!cell.claim.compare_exchange_strong(nobody, claim)) note_fault(&cell, claim);
}

void Witness::end_use(size_t slot, uint64_t claim) {
    WitnessCell& cell = cells_[slot];
    uint64_t mine = claim;
    if (!cell.claim.compare_exchange_strong(mine, 0)) note_fault(&cell, claim);
    cell.uses.fetch_add(1);
}

void Witness::note_fault(WitnessCell* cell, uint64_t claim) {
    cell->faults.fetch_add(1);
    cell->last_fault.store(claim);
}

uint64_t Witness::uses() const {
    uint64_t sum = 0;
    for (const WitnessCell& cell : cells_)
        sum += cell.uses.load();
    return sum;
}

uint64_t Witness::faults() const {
    uint64_t sum = 0;
    for (const WitnessCell& cell : cells_)
        sum += cell.faults.load();
    return sum;
}

size_t Witness::in_use() const {
    return static_cast<size_t>(std::count_if(
        cells_.begin(), cells_.end(), [](const WitnessCell& cell) { return cell.claim != 0; }));
}

}  // namespace dibs::ctl::demo
