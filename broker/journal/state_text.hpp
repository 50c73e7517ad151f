// broker/journal/state_text.hpp -- writes the scheduler's rows as JSON with the journal's names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "broker/core/look.hpp"
#include "broker/journal/name_map.hpp"

namespace dibs::ctl {

// The broker, pools by row, slots by pool and number, claims and leases by the claim's number,
// sessions by row.
std::vector<std::string> state_text(const core::Core& core, const NameMap& map);

// One row each; its "state" is "none" where the thing is not there any more. Throw JournalError
// where the name was never given.
std::string broker_text(const core::Core& core);
std::string pool_text(const core::Core& core, const NameMap& map, const std::string& pool);
// `pool` is needed for slots that have a number only.
std::string slot_text(const core::Core& core,
                      const NameMap& map,
                      const std::string& pool,
                      const std::string& slot);
// Over several pools: in this pool, or if that is empty in the one that the claim names first.
std::string claim_text(const core::Core& core,
                       const NameMap& map,
                       const std::string& claim,
                       const std::string& pool);
std::string lease_text(const core::Core& core,
                       const NameMap& map,
                       const std::string& claim,
                       const std::string& pool);
std::string account_text(const core::Core& core, const std::string& account);
// A slot as the pull protocol sees it.
std::string worker_text(const core::Core& core,
                        const NameMap& map,
                        const std::string& pool,
                        const std::string& worker);
// An entry of a dispatched pool, all of them, and what its worker's row says.
std::string entry_text(const core::Core& core,
                       const NameMap& map,
                       const std::string& pool,
                       const std::string& entry);
void add_entries(const core::Core& core, const NameTables& names, std::vector<std::string>* lines);
void write_dispatched_worker(JsonText& json, const core::Core& core, uint32_t row);
std::string_view entry_reason_word(core::EntryReason reason);
std::string type_text(const core::Core& core, const std::string& pool, const std::string& type);
// Of an elastic pool's row; of another's nothing.
void write_elastic(JsonText& json, const core::Core& core, uint32_t pool);
// Of an application and of a task; all applications by number, then all tasks, by that of their
// application and theirs.
std::string application_text(const core::Core& core,
                             const NameMap& map,
                             uint32_t uid,
                             const std::string& application);
std::string task_text(const core::Core& core,
                      const NameMap& map,
                      uint32_t uid,
                      const std::string& application,
                      const std::string& task);
void add_applications(const core::Core& core,
                      const NameTables& names,
                      std::vector<std::string>* lines);
// What a placeholder, and a claim of an application, say of it.
void write_placeholder(JsonText& json, const core::Core& core, const shm::SlotRow& slot);
void write_member(JsonText& json, const core::Core& core, const shm::ClaimRow& claim);
std::string session_text(const core::Core& core, const NameMap& map, const std::string& session);

}  // namespace dibs::ctl
