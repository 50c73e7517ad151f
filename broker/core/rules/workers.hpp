// broker/core/rules/workers.hpp -- carries out what workers say of their slots.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "broker/core/module.hpp"

namespace dibs::core {

struct Workers : Module<Workers> {
    explicit Workers(const State& rows) : Module(rows) {}

    // workers.cpp
    void apply(const Announce& command);
    void apply(const WorkerWord& word);
    void qualify(uint32_t slot, std::span<const std::string_view> labels);
    void say_withdraw(uint32_t slot);
    void protect(uint32_t slot, bool on);
    [[nodiscard]] uint32_t find_name(uint32_t pool, std::string_view name) const;
    [[nodiscard]] uint64_t name_hash(uint32_t pool, std::string_view name) const;

  private:
    // workers.cpp
    [[nodiscard]] Reason announce_refusal(const Announce& command,
                                          uint32_t existing,
                                          uint32_t order) const;
    void fill_announced(uint32_t slot, const Announce& command);
    bool leave_unfit_claim(uint32_t slot);
    void say_ready(uint32_t slot);
    void say_confirm(uint32_t slot, const WorkerWord& word);
    void confirm_late(uint32_t slot);
    void say_refuse(uint32_t slot, const WorkerWord& word);
    void say_done(uint32_t slot, const WorkerWord& word);
    [[nodiscard]] bool allowed(const WorkerWord& word, uint32_t slot) const;
    void tell_answer(uint32_t slot, std::span<const uint8_t> answer);
    void readmit(uint32_t slot);
};

}  // namespace dibs::core
