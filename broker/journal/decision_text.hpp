// broker/journal/decision_text.hpp -- writes a decision as a line of JSON with the journal's names.
//
// The text depends on the decision and the names alone, so that two schedulers that decide the same
// print the same. docs/scenarios.md lists the fields of every kind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/core/decision.hpp"
#include "broker/core/ids.hpp"
#include "broker/journal/json_text.hpp"
#include "shm/layout.hpp"

namespace dibs::ctl {

// What a result is the result of.
struct Operation {
    std::string word;     // "release", "confirm", …
    std::string subject;  // "claim", "slot", "application", …
    std::string name;     // of that
};

// What the author calls the rows and numbers that decisions carry. What has no name is printed as
// "#" and its number.
struct NameTables {
    std::vector<std::string> pools;                              // by row
    std::vector<std::string> sessions;                           // by row
    std::vector<std::string> claims;                             // by number; 0 is no claim's
    std::map<std::pair<uint32_t, uint32_t>, std::string> slots;  // by (pool row, number)
    std::vector<Operation> operations;                           // by user_data
    std::vector<std::string> accounts;                           // by row
    std::map<uint32_t, std::vector<std::string>> resources;      // by pool row
    std::vector<std::string> types;                              // by row

    [[nodiscard]] std::string pool(core::PoolId row) const;
    [[nodiscard]] std::string session(core::SessionId row) const;
    [[nodiscard]] std::string claim(core::ClaimNumber number) const;
    [[nodiscard]] std::string account(core::AccountId row) const;
    [[nodiscard]] std::string type(core::TypeId row) const;
};

// `amounts`: the cost of a kPreempt or kRefund, or what a
// part has that is granted. `slot_numbers`: of the slots of a kGrant or kLeaseEnd, within
// their pool, in their order. No newline at its end.
std::string decision_text(const core::Decision& decision,
                          std::span<const uint32_t> slot_numbers,
                          const NameTables& names,
                          std::span<const int64_t> amounts = {});
// As a list of tables.
void write_resources(JsonText& json,
                     std::string_view key,
                     std::span<const core::Resource> resources);

// The words for the layout's values, as journals, documents and the tool write them.
std::string_view reason_word(shm::Reason reason);
std::string_view outcome_word(shm::Outcome outcome);
std::string_view slot_state_word(shm::SlotState state);
std::string_view app_state_word(shm::AppState state);
std::string_view task_state_word(shm::TaskState state);
std::string_view pool_state_word(const shm::PoolRow& pool);

}  // namespace dibs::ctl
