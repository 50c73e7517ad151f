// broker/ctl/worker/assignment_text.hpp -- writes a worker command's assignment as JSON:
//
//   {"kind":"assign","pool":"web","slot":0,"round":3,"claim":12,
//    "options":{"hold":"5"},"labels":["fast"],"body":"text"}
//   {"kind":"release","pool":"web","slot":0,"round":3,"claim":12}
//
// A body that is not UTF-8 comes as "body_base64". For a claim that prefers labels there are two
// more lists: "prefer", and of them those that the slot lacks, "provision". For a part of a slot
// there is what it has: "resources":{"memory":10737418240}.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "dibs/dibs.h"

namespace dibs::ctl::worker {

// With the end of the line.
std::string assign_line(const std::string& pool, const dibs_assignment& assignment);
std::string release_line(const std::string& pool, uint32_t slot, uint64_t round, uint64_t claim);

// For people: whole milliseconds, where there are any.
std::string shown_time(int64_t ns);

bool is_utf8(std::string_view bytes);
std::string base64(std::string_view bytes);

}  // namespace dibs::ctl::worker
