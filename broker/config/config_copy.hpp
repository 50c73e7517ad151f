// broker/config/config_copy.hpp -- the text of the configuration that was read last and was good.
//
// It goes with STATE to whoever follows: a file that is broken by then must not leave users with
// other rights and limits than they had.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "broker/config/config.hpp"
#include "shm/descriptor.hpp"

namespace dibs {

// A sealed memfd. Throws std::system_error.
shm::Descriptor copy_config(std::string_view text);
// What is in one. Throws std::system_error.
std::string text_of_copy(int memfd);
// What `file` said then; what of it cannot be understood by now (a user who has gone, say) is left
// out, and logged. Without a copy all is as built in.
Config config_as_read_before(const std::string& file, const shm::Descriptor& copy);

}  // namespace dibs
