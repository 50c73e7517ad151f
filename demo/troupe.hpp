// demo/troupe.hpp -- sets up all processes and sessions of a run and counts them.
// These are the private broker, its workers, the tenants' sessions and the witness; they are set up
// in order, taken down in order, and counted afterwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demo/child.hpp"
#include "demo/child_output.hpp"
#include "demo/client_session.hpp"
#include "demo/player.hpp"
#include "demo/private_broker.hpp"
#include "demo/sampler.hpp"
#include "demo/witness.hpp"
#include "demo/workload.hpp"
#include "dibs/dibs.h"

namespace dibs::ctl::demo {

// What is left after all participants have ended.
struct Departure {
    std::optional<int> broker_status;  // none: it had to be killed
    size_t workers_failed = 0;         // that did not end with 0 when asked to
    std::string first_failure;
    size_t children_left = 0;
    bool folder_gone = false;
};

class Troupe {
  public:
    // Throws std::runtime_error or std::system_error with what is wrong; leaves nothing behind.
    explicit Troupe(const Workload& workload);
    Troupe(const Troupe&) = delete;
    Troupe& operator=(const Troupe&) = delete;

    // The participants, in a line.
    [[nodiscard]] std::string describe() const;
    PlayResult play(int signal_fd, bool shows_progress);
    // The pool's totals, while the broker lives: once they are those of this play, if ever.
    std::optional<dibs_totals> totals(const PlayResult& result);
    // Sessions, workers, broker, folder: in this order.
    Departure leave();

    [[nodiscard]] const Witness& witness() const { return witness_; }
    [[nodiscard]] const Sampler& sampler() const { return sampler_; }

  private:
    void start_workers();
    void open_sessions();

    const Workload& workload_;
    TemporaryFolder folder_;
    Witness witness_;
    Sampler sampler_;
    std::unique_ptr<PrivateBroker> broker_;
    ChildOutput worker_output_{" is ready to work"};
    std::vector<Child> workers_;
    std::vector<std::unique_ptr<ClientSession>> sessions_;
};

}  // namespace dibs::ctl::demo
