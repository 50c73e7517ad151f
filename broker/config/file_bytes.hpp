// broker/config/file_bytes.hpp -- returns all bytes of a file, or why it cannot be read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace dibs {

inline constexpr size_t kSnapshotMost = size_t{2} << 30;  // where FlatBuffers end

// Throws std::runtime_error: "PATH: why"; also where a file is larger than `files_most`, and where
// something else than a file does not end in time. A pipe without a writer is waited for, and
// standard error says so after a second.
std::string file_bytes(const std::string& path, size_t files_most = SIZE_MAX);
// The same, and at most `most` bytes, for callers that must not wait for a writer: what is not a
// file, but a pipe say, must deliver something every five seconds until it ends.
std::string prompt_file_bytes(const std::string& path, size_t most = 64U << 20);
// The same as the first of what is open; `name` stands for the path.
std::string file_bytes(int fd, const std::string& name, size_t files_most = SIZE_MAX);

}  // namespace dibs
