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

// What a word to the broker is about: a slot or a part of one, by its id, and which assignment.
struct Round {
    uint64_t slot = 0;
    uint64_t number = 0;

    bool operator==(const Round&) const = default;
};

// Hopeless where this process's attributes are longer than its pool takes.
void check_attributes(const Options& options,
                      uint32_t index,
                      pid_t process,
                      const dibs_pool_limits& limits);

class Post {
  public:
    // Attaches and announces an idle slot, behind which this process is; `order` empty: made for
    // none. Failure.
    Post(const Options& options,
         const std::string& name,
         uint32_t index,
         pid_t process,
         const std::string& order);

    [[nodiscard]] int fd() const { return dibs_fd(attachment_.session()); }
    // False: there is something to take before one may sleep.
    [[nodiscard]] bool arm() { return dibs_arm(attachment_.session()) == DIBS_OK; }
    // As dibs_next_assignment, without waiting.
    int next(dibs_assignment* assignment);

    // Words. False: the session has ended.
    bool confirm(Round round, std::string_view answer);
    bool refuse(Round round, int64_t code, bool try_again);
    bool done(Round round, std::string_view answer, bool then_ready);
    bool ready(Round round);
    bool withdraw();
    // Why it has ended.
    [[nodiscard]] std::string end() const;
    [[nodiscard]] uint64_t slot() const { return slot_; }
    [[nodiscard]] size_t answer_max() const { return answer_max_; }

  private:
    Attachment attachment_;
    uint64_t slot_ = 0;
    size_t answer_max_ = 0;
};

}  // namespace dibs::ctl::worker
