// broker/ctl/metrics/service.hpp -- serves metrics over HTTP until a signal ends it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace dibs::ctl {

struct Listening {
    std::string address;      // "127.0.0.1:9464", "[::1]:9464"; port 0: any
    bool others_may = false;  // an address that other hosts may reach
    std::string socket;       // the broker's
};

// Asks the broker at each scrape, but at most once a second; it may come and go. Returns the exit
// code. Failure: the address cannot be had.
int serve_metrics(const Listening& listening);

}  // namespace dibs::ctl
