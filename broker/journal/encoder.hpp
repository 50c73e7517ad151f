// broker/journal/encoder.hpp -- writes the core's commands as lines of a binary journal.
//
//   turn_opens · given … · turn_closed     turn_opens · given … · turn_closed     …
//
// The turns stand as they were, cut ones too, each with a checksum of every decision that it made:
// a replay sees at once whether it decides the same. Commands are copied while they are valid.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/core/tap.hpp"

namespace dibs {

class Encoder : public core::Tap {
  public:
    explicit Encoder(const core::Core& core) : core_(core) {}

    // The lines since the last time.
    [[nodiscard]] std::vector<uint8_t> take();

    void hear(const core::PoolConfig& pool) override;
    void hear_of_deleted_pool(uint32_t row, bool when_unused) override;
    void hear(const core::AccountConfig& account) override;
    void hear_of_deleted(std::string_view account) override;
    void hear_of_reset(std::string_view account, std::span<const int64_t> balance) override;
    void hear(const core::SessionOpen& open) override;
    void hear_of_death(uint32_t session) override;
    void hear(const core::Claim& claim, bool pledged) override;
    void hear(const core::Cancel& cancel) override;
    void hear(const core::Release& release) override;
    void hear(const core::Keepalive& keepalive) override;
    void hear(const core::Adopt& adopt) override;
    void hear(const core::KillFailed& failed) override;
    void hear(const core::Announce& announce) override;
    void hear(const core::WorkerWord& word) override;
    void hear(const core::Drain& drain) override;
    void hear(const core::Steer& steer) override;
    void hear(const core::Report& report) override;
    void hear(const core::Pull& pull) override;
    void hear(const core::Unassign& unassign) override;
    void hear(const core::UpdateClaim& update) override;
    void hear_of_commit() override;

  private:
    void open_turn();
    template <class Table, class Add>
    void line(const Table& table, const Add& add);
    template <class Given>
    void give(const Given& given);

    const core::Core& core_;
    flatbuffers::FlatBufferBuilder builder_{1024};
    std::vector<uint8_t> lines_;
    bool turn_open_ = false;
};

}  // namespace dibs
