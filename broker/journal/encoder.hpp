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
#include <vector>

#include "broker/core/core.hpp"
#include "broker/core/tap.hpp"

namespace dibs {

class Encoder : public core::Tap {
  public:
    explicit Encoder(const core::Core& core) : core_(core) {}

    // The lines since the last time.
    [[nodiscard]] std::vector<uint8_t> take();

    void hear(const core::CommandRef& command) override;
    void hear_of_commit() override;

  private:
    void open_turn();
    // `field`: of the line, with the table that lies in the builder.
    void line(flatbuffers::voffset_t field, flatbuffers::uoffset_t table);

    const core::Core& core_;
    flatbuffers::FlatBufferBuilder builder_{1024};
    std::vector<uint8_t> lines_;
    bool turn_open_ = false;
};

}  // namespace dibs
