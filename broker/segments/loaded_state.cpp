// broker/segments/loaded_state.cpp -- maps, fills and checks a STATE from a snapshot.
// SPDX-License-Identifier: Apache-2.0
#include "broker/segments/loaded_state.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "broker/config/file_bytes.hpp"
#include "broker/config/quantity.hpp"
#include "broker/core/core.hpp"
#include "broker/segments/mapping.hpp"
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

// By the bytes that a table takes, since a log that is too small is laid out larger.
void refuse_beyond(const core::Limits& needed, const core::Limits& bound) {
    static constexpr std::pair<const char*, uint32_t core::Limits::*> kTables[] = {
        {"pools", &core::Limits::pools},
        {"sessions", &core::Limits::sessions},
        {"slots", &core::Limits::slots},
        {"claims", &core::Limits::claims},
        {"leases", &core::Limits::leases},
        {"accounts", &core::Limits::accounts},
        {"label_sets", &core::Limits::label_sets},
        {"arena", &core::Limits::arena_blocks},
        {"log_images", &core::Limits::log_images},
        {"log_stores", &core::Limits::log_stores},
    };
    for (const auto& [name, rows] : kTables) {
        core::Limits with = bound;
        with.*rows = needed.*rows;
        if (core::state_size(with) <= core::state_size(bound)) continue;
        const auto shown = [&, arena = rows == &core::Limits::arena_blocks](uint32_t count) {
            return arena ? show_size(uint64_t{count} * sizeof(shm::ArenaBlock))
                         : std::to_string(count);
        };
        throw std::runtime_error(std::string("it is of a broker with limits.") + name + " = " +
                                 shown(needed.*rows) + ", this one has " + shown(bound.*rows) +
                                 ": raise it in [limits] of the configuration, and start dibsd "
                                 "again");
    }
}

}  // namespace

LoadedState load_state(std::span<const uint8_t> snapshot,
                       const core::Limits& bound,
                       uint64_t epoch) {
    const snapshot::Loader loader(snapshot);
    refuse_beyond(loader.limits(), bound);
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

LoadedState load_state_file(const std::string& path, const core::Limits& bound) {
    const std::string bytes = prompt_file_bytes(path, kSnapshotMost);  // it takes no signal
                                                                       // meanwhile
    try {
        return load_state({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, bound, 0);
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(path + ": " + error.what());
    }
}

}  // namespace dibs
