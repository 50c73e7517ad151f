// broker/ctl/worker/post.hpp -- announces one slot to the broker, in a session of its own.
// Closing that session has the effect of a worker's death: the lease on the slot of a dead process
// ends at once, and a claim that was just chosen for the slot waits again in its place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/worker/options.hpp"

namespace dibs::ctl::worker {

// A slot that the broker will never take: trying again is in vain.
class Hopeless : public Failure {
  public:
    using Failure::Failure;
};

// Hopeless where this process's attributes are longer than its pool takes.
void check_attributes(const Options& options,
                      uint32_t index,
                      pid_t process,
                      const dibs_pool_limits& limits);

class Post {
  public:
    // Attaches and announces an idle slot, behind which this process is; Failure.
    Post(const Options& options, const std::string& name, uint32_t index, pid_t process);

    [[nodiscard]] int fd() const { return dibs_fd(attachment_.session()); }
    // False: there is something to take before one may sleep.
    [[nodiscard]] bool arm() { return dibs_arm(attachment_.session()) == DIBS_OK; }
    // As dibs_next_assignment, without waiting.
    int next(dibs_assignment* assignment);

    // Words. False: the session has ended.
    bool confirm(uint64_t round, std::string_view answer);
    bool refuse(uint64_t round, int64_t code, bool try_again);
    bool done(uint64_t round, std::string_view answer, bool then_ready);
    bool ready(uint64_t round);
    bool withdraw();
    // Why it has ended.
    [[nodiscard]] std::string end() const;
    [[nodiscard]] size_t answer_max() const { return answer_max_; }

  private:
    Attachment attachment_;
    uint64_t slot_ = 0;
    size_t answer_max_ = 0;
};

}  // namespace dibs::ctl::worker
