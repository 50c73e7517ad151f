// broker/admin/recorder.hpp -- one conversation that records: what waits for room in its socket.
//
// It is sent answers that nobody asked for, each with some bytes of the journal: first the
// snapshot, slice by slice as it asks for them, then lines as they come, cut anywhere. The last
// answer has no `more`: it says whether the recording was stopped or has a hole from here on. No
// more is taken from the recording than the socket takes: what waits, waits there, where the bound
// is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "broker/admin/recording.hpp"

namespace dibs {

class Recorder {
  public:
    explicit Recorder(Recording& recording) : recording_(&recording) {}

    enum class Sent : uint8_t { kAll, kWaits, kFinished, kGone };
    // Sends what there is and the socket takes. kFinished: the last answer has left.
    [[nodiscard]] Sent flush(int socket);

  private:
    static constexpr size_t kPacketBytes = 65536;  // of the journal
    static constexpr int kPacketsAtOnce = 16;      // then others are heard

    [[nodiscard]] bool prepare();

    Recording* recording_;
    std::vector<uint8_t> bytes_;   // taken from the recording, in no packet yet
    std::vector<uint8_t> packet_;  // that the socket did not take
    bool last_ = false;            // and nothing follows it
};

}  // namespace dibs
