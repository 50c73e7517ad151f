// broker/file_bytes.hpp -- a file's bytes, all of them, or why there are none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace dibs {

// Throws std::runtime_error: "PATH: why".
std::string file_bytes(const std::string& path);
// The same where nobody may wait for whoever writes: what is no file, but a pipe say, has to say
// something every five seconds until it ends, and to end before it has said more than that.
std::string prompt_file_bytes(const std::string& path, size_t pipes_most = 64U << 20);
// The same as the first of what is open; `name` stands for the path.
std::string file_bytes(int fd, const std::string& name);

}  // namespace dibs
