// broker/admin/measured.cpp -- reports the broker's measurements to admin clients.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/measured.hpp"

#include <memory>

namespace dibs {

namespace {

std::unique_ptr<admin::WaitsT> told(const char* path, const Waits& waits) {
    auto out = std::make_unique<admin::WaitsT>();
    out->path = path;
    out->counts.assign(waits.counts.begin(), waits.counts.end());
    out->sum_ns = waits.sum_ns;
    return out;
}

}  // namespace

void tell_measured(const core::Core& core, const Publisher& publisher, AdminJob* job) {
    static constexpr std::array<const char*, kPaths> kWords = {"fast", "at_once", "queued"};
    if (!job->request.measured) return;
    if (job->answer.status != nullptr) {
        admin::StatusT& status = *job->answer.status;
        status.net_found_work = publisher.net_count();
        status.net_reported = publisher.net_reported_count();
        for (size_t index = 0; index < Waits::kBounds; ++index)
            status.wait_bounds_ns.push_back(Waits::bound_ns(index));
        status.reported = told("", publisher.self_reported());
    }
    for (const auto& pool : job->answer.pools) {
        const uint32_t row = core.find_pool(pool->name);
        const PoolWaits* waits = publisher.waits(row);
        if (waits == nullptr) continue;
        for (size_t path = 0; path < kPaths; ++path)
            pool->waits.push_back(told(kWords[path], (*waits)[path]));
    }
}

}  // namespace dibs
