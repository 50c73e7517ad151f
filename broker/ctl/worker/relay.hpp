// broker/ctl/worker/relay.hpp -- passes on to the log what a process writes to its standard error.
//
// Line by line, with the slot's name before each. The process writes to a pipe that is emptied here
// whatever becomes of the lines: where the log has no room they are dropped and counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shm/descriptor.hpp"

namespace dibs::ctl::worker {

class Relay {
  public:
    Relay();  // Failure

    [[nodiscard]] int reading() const { return reading_.get(); }
    // For the processes of one slot, one after the other; it stays open.
    [[nodiscard]] int writing() const { return writing_.get(); }
    // Takes what has come, up to a bound, so that others have their turn.
    void pass_on(const std::string& name);
    // A last line without its end, when its process has ended.
    void finish(const std::string& name);

  private:
    shm::Descriptor reading_;
    shm::Descriptor writing_;
    std::string rest_;  // of a line
};

}  // namespace dibs::ctl::worker
