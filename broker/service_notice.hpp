// broker/service_notice.hpp -- what a service manager is told: datagrams to $NOTIFY_SOCKET.
//
// The protocol is a line "NAME=value" each; no library is needed for it. Without the variable
// nothing happens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace dibs {

void notify_service(const std::string& lines);

}  // namespace dibs
