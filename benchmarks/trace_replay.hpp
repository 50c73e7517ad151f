// benchmarks/trace_replay.hpp -- an archive's workload through the core, an account per user.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "benchmarks/contender.hpp"

namespace dibs::bench {

struct Jobs;

class TraceReplay : public Contender {
  public:
    explicit TraceReplay(const std::string& path);  // throws if the file cannot be read
    ~TraceReplay() override;
    TraceReplay(const TraceReplay&) = delete;
    TraceReplay& operator=(const TraceReplay&) = delete;

    // The whole workload once, however many operations: a sample, the mean of a claim or release.
    void measure(uint32_t operations, Samples& out) override;
    // What it is made of.
    [[nodiscard]] std::string shape() const;

  private:
    std::unique_ptr<Jobs> jobs_;
};

}  // namespace dibs::bench
