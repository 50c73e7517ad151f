// broker/ctl/metrics/families.hpp -- turns the broker's figures into Prometheus metrics.
//
// Labels are pools, pool sets, configured accounts and fixed words: the tables of the broker bound
// their number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "broker/ctl/admin/admin_client.hpp"

namespace dibs::ctl {

using Families = std::vector<prometheus::MetricFamily>;

// One conversation: the status, then the pages of pools and accounts, and the sets. Failure.
Families families_of(AdminClient& client);
// Whether there was a broker to ask, and how long asking took.
void add_scrape(Families* families, bool up, int64_t took_ns);

}  // namespace dibs::ctl
