// benchmarks/dibs_slots.cpp -- slots of a counted pool; each source starts its own dibsd.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/dibs_slots.hpp"

#include <stdexcept>

namespace dibs::bench {

namespace {

std::string counted_pool(uint32_t slots, const std::string& spin, const std::string& quantum) {
    return (spin.empty() ? "" : "spin = \"" + spin + "\"\n") +
           "[limits]\nsessions = 80\n[[pool]]\nname = \"slots\"\nkind = \"counted\"\nslots = " +
           std::to_string(slots) + "\n" +
           (quantum.empty() ? "" : "quantum = \"" + quantum + "\"\n");
}

}  // namespace

DibsSlots::DibsSlots(uint32_t slots, const Cpus& cpus, const Setting& setting)
    : broker_({.config = counted_pool(slots, setting.spin, setting.quantum),
               .cpu = cpus.first,
               .second_cpu = cpus.second}),
      spin_us_(setting.client_us) {}

void DibsSlots::attach(uint32_t /*worker*/) {
    client_ = std::make_unique<SessionClient>(
        ClientSetup{.socket = broker_.socket(), .spin_us = spin_us_});
    pool_ = client_->pool("slots");
}

void DibsSlots::claim() {
    dibs_completion end;
    must(dibs_claim(client_->get(), pool_, nullptr, &end), "dibs_claim");
    if (end.outcome != DIBS_GRANTED) {
        throw std::runtime_error(std::string("a claim ended ") + dibs_outcome_name(end.outcome));
    }
    lease_ = end.lease;
}

void DibsSlots::release() {
    must(dibs_release(client_->get(), &lease_, DIBS_NOWAIT), "dibs_release");
}

}  // namespace dibs::bench
