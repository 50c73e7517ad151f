// broker/loaded_state.cpp -- memory, rows, checks.
// SPDX-License-Identifier: Apache-2.0
#include "broker/loaded_state.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/file_bytes.hpp"
#include "broker/mapping.hpp"
#include "broker/snapshot/load.hpp"
#include "shm/memfd.hpp"

namespace dibs {

namespace {

void end_the_drain(core::Core& core) {
    core.begin_turn(core.now());
    core.apply(core::Drain{.on = false});
    do {
        core.decide();
        core.commit();
        core.clear();
        core.begin_turn(core.now());
    } while (core.cut());
    core.commit();
    core.clear();
}

}  // namespace

LoadedState load_state(std::span<const uint8_t> snapshot, uint64_t epoch) {
    const snapshot::Loader loader(snapshot);
    const uint64_t size = core::state_size(loader.limits());
    LoadedState loaded{shm::make_memfd("dibs-state", size, shm::Pages::kLarge), loader.time_ns()};
    const Mapping mapping(loaded.state.get(), size);
    loader.fill(mapping.bytes());
    core::Core core(mapping.bytes());
    const std::vector<std::string> violations = core.check_all();
    if (!violations.empty()) throw std::runtime_error(violations.front());
    if (core.draining()) end_the_drain(core);
    core.set_epoch(std::max(core.head().epoch, epoch));
    return loaded;
}

LoadedState load_state_file(const std::string& path) {
    const std::string bytes =
        prompt_file_bytes(path, size_t{4} << 30);  // its reader hears no signal
    try {
        return load_state({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, 0);
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(path + ": " + error.what());
    }
}

}  // namespace dibs
