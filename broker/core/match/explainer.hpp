// broker/core/match/explainer.hpp -- says why a claim waits, by the same predicates as the pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "broker/core/match/account_book.hpp"
#include "broker/core/match/explanation.hpp"
#include "broker/core/module.hpp"

namespace dibs::core {

struct Explainer : Module<Explainer> {
    explicit Explainer(const State& rows) : Module(rows) {}

    // explain.cpp
    [[nodiscard]] Explanation explain(uint32_t claim);

  private:
    // explain.cpp
    [[nodiscard]] WaitReason obstacle_of(uint32_t claim, Explanation* told);
    [[nodiscard]] WaitReason obstacle_to_part(uint32_t claim, Explanation* told);

    [[nodiscard]] WaitReason obstacle_to_workers(uint32_t claim,
                                                 const Crowd* crowd,
                                                 Explanation* told);

    // gang_explain.cpp
    void explain_gang(uint32_t app, uint32_t group, Explanation* told) const;
    void explain_held(uint32_t claim, Explanation* told) const;
    [[nodiscard]] bool explain_ask(uint32_t claim, uint32_t first, Explanation* told) const;

    // account_explain.cpp
    void explain_promise(uint32_t claim, Explanation* told) const;
    void explain_class(uint32_t claim, Explanation* told) const;
    void explain_place(uint32_t claim, Explanation* told) const;
    void explain_fitting(const Crowd& crowd, Explanation* told) const;
    void explain_preemption(uint32_t claim, Explanation* told);
    [[nodiscard]] WaitReason explain_labels(const Crowd& crowd, Explanation* told) const;
    [[nodiscard]] uint32_t idle_for(const Crowd& crowd, bool* limited, Explanation* told);
    [[nodiscard]] uint32_t units_with(const Crowd& crowd, std::string_view label) const;
    [[nodiscard]] bool over_limit(const Crowd& crowd, Explanation* told) const;
    [[nodiscard]] bool limit_reached(const Crowd& crowd, uint32_t set, Explanation* told) const;
    [[nodiscard]] PreemptReason preemption_now(const Crowd& crowd, uint8_t at_class);
    [[nodiscard]] uint8_t class_in_pass(const Crowd& crowd) const;
};

}  // namespace dibs::core
