// tests/fuzz/put_back.cpp -- the log is written from its start, and no entry of it is zeroes.
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/put_back.hpp"

#include <cstring>

#include "shm/layout.hpp"

namespace dibs::fuzz {

namespace {

using shm::Table;

void copy(std::span<std::byte> state,
          std::span<const std::byte> base,
          uint64_t offset,
          uint64_t size) {
    if (base.empty()) {
        std::memset(state.data() + offset, 0, size);
    } else {
        std::memcpy(state.data() + offset, base.data() + offset, size);
    }
}

}  // namespace

void put_back(std::span<std::byte> state, std::span<const std::byte> base) {
    const std::byte* layout = base.empty() ? state.data() : base.data();
    const auto& table = reinterpret_cast<const shm::StateHead*>(layout)->table;
    const shm::TablePlace offsets = table[static_cast<size_t>(Table::kLogOffsets)];
    const shm::TablePlace images = table[static_cast<size_t>(Table::kLogImages)];
    const shm::TablePlace stores = table[static_cast<size_t>(Table::kLogStores)];
    copy(state, base, 0, offsets.offset);
    const auto* offset = reinterpret_cast<const uint64_t*>(state.data() + offsets.offset);
    uint32_t used = 0;
    while (used < images.rows && offset[used] != 0)
        ++used;
    copy(state, base, offsets.offset, used * sizeof(uint64_t));
    copy(state, base, images.offset, used * sizeof(shm::LogImage));
    const auto* store = reinterpret_cast<const shm::LogStore*>(state.data() + stores.offset);
    used = 0;
    while (used < stores.rows && store[used].generation != 0)
        ++used;
    copy(state, base, stores.offset, used * sizeof(shm::LogStore));
}

}  // namespace dibs::fuzz
