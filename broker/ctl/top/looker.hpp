// broker/ctl/top/looker.hpp -- keeps one conversation with the broker, and renews a lost one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/top/action.hpp"
#include "broker/ctl/top/facts.hpp"

namespace dibs::ctl::top {

class Looker {
  public:
    // Failure: there is no broker now.
    explicit Looker(std::string socket);

    // Failure: the broker is there and refuses.
    void look();
    // Of the last look that succeeded.
    [[nodiscard]] const Facts& facts() const { return facts_; }
    // Why the last look did not succeed, with since when; empty: it did.
    [[nodiscard]] std::string absence() const;
    // What has become of it, in a sentence.
    std::string act(const Action& action);

  private:
    void lose(const std::string& why);

    std::string socket_;
    std::optional<AdminClient> client_;
    Facts facts_;
    bool has_looked_ = false;
    std::string why_;  // it is not reached; empty: it is
    int64_t lost_ns_ = 0;
};

}  // namespace dibs::ctl::top
