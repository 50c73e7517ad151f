// demo/sampler.hpp -- checks in snapshots that no slot is missing or counted twice.
// It looks at the pool's published counters again and again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "dibs/dibs.h"

namespace dibs::ctl::demo {

class Sampler {
  public:
    // `slots`: what every picture must add up to.
    explicit Sampler(uint32_t slots) : slots_(slots) {}

    void look(dibs_session* session, uint32_t pool);
    // The check alone.
    void weigh(const dibs_counters& counters);

    [[nodiscard]] uint64_t samples() const { return samples_; }
    [[nodiscard]] uint64_t broken() const { return broken_; }
    [[nodiscard]] uint64_t unread() const { return unread_; }  // dibs_snapshot gave a code
    [[nodiscard]] const std::string& first_broken() const { return first_broken_; }
    [[nodiscard]] uint32_t most_queued() const { return most_queued_; }
    [[nodiscard]] const dibs_counters& last() const { return last_; }

  private:
    uint32_t slots_;
    uint64_t samples_ = 0;
    uint64_t broken_ = 0;
    uint64_t unread_ = 0;
    uint32_t most_queued_ = 0;
    std::string first_broken_;
    dibs_counters last_{};
};

}  // namespace dibs::ctl::demo
