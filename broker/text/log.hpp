// broker/text/log.hpp -- writes log lines to standard error.
//
// It is never called on the claim path and never prints payload bytes. One translation unit knows
// the logging library. Any thread may write, and none waits for the log's reader
// (broker/text/line_writer.hpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace dibs::log {

void open(const std::string& level);  // trace, debug, info, warning, error, off
void debug(const std::string& text);
void info(const std::string& text);
void warning(const std::string& text);
void error(const std::string& text);
// What a client of this user can cause as often as it likes: bounded for each user and place
// (broker/text/log_throttle.hpp).
void client_info(uint32_t uid, const char* place, const std::string& text);
void client_warning(uint32_t uid, const char* place, const std::string& text);
void plain(const std::string& text);  // a line without time and level, at every level

}  // namespace dibs::log
