// benchmarks/dibs_slots.hpp -- slots of a counted pool; each source starts its own dibsd.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "benchmarks/broker_process.hpp"
#include "benchmarks/placement.hpp"
#include "benchmarks/session_client.hpp"
#include "benchmarks/slot_source.hpp"

namespace dibs::bench {

class DibsSlots final : public SlotSource {
  public:
    struct Setting {
        std::string spin{};     // dibsd's `spin`; empty = as it is by default
        int32_t client_us = 0;  // as in dibs_connect_options
        std::string quantum{};  // of the pool; empty = as it is by default
    };
    DibsSlots(uint32_t slots, const Cpus& cpus, const Setting& setting);
    void attach(uint32_t worker) override;
    void claim() override;
    void release() override;
    [[nodiscard]] std::vector<pid_t> servers() const override { return {broker_.pid()}; }

  private:
    BrokerProcess broker_;
    int32_t spin_us_;
    std::unique_ptr<SessionClient> client_;
    uint32_t pool_ = 0;
    dibs_lease lease_ = {};
};

}  // namespace dibs::bench
