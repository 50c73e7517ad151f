// broker/ctl/top/action.hpp -- maps the keys of `dibs top` to requests to the broker.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/top/table.hpp"

namespace dibs::ctl::top {

struct Action {
    enum class Kind : uint8_t { kNone, kExplain, kDrain, kUndrain, kRelease };
    Kind kind = Kind::kNone;
    std::string pool;
    uint64_t id = 0;        // of the claim or lease
    std::string name = {};  // of the same
    std::string question;   // empty: it is done without one
};

// What `key` would do to the row; of kind kNone with what is wrong as its question.
Action action_of(int key, const Facts& facts, const RowName& row);

// Does it: what has become of it, as a sentence. Failure only where the broker is not reached.
std::string act(AdminClient& client, const Action& action);

}  // namespace dibs::ctl::top
