// broker/ctl/admin/listing.hpp -- lays out the rows of answers as sheets.
// Only this file says which keys the JSON has and which columns a table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "schemas/admin_generated.h"

namespace dibs::ctl {

Sheet status_sheet(const admin::StatusT& status, const std::string& socket);
Sheet pool_sheet(const std::vector<std::unique_ptr<admin::PoolT>>& pools);
// What `dibs show` tells of an elastic pool beside its row.
void add_elastic(const admin::ElasticT& elastic, Sheet types, Sheet* pool);
Sheet type_sheet(const std::vector<std::unique_ptr<admin::TypeT>>& types);
Sheet entry_sheet(const std::vector<std::unique_ptr<admin::EntryT>>& entries);
Sheet set_sheet(const std::vector<std::unique_ptr<admin::SetT>>& sets);
Sheet slot_sheet(const std::vector<std::unique_ptr<admin::SlotT>>& slots, const Viewpoint& from);
Sheet claim_sheet(const std::vector<std::unique_ptr<admin::ClaimT>>& claims, const Viewpoint& from);
// "memory=10GiB sm=20".
std::string amounts_text(const std::vector<std::string>& names,
                         const std::vector<uint64_t>& counts);
Sheet lease_sheet(const std::vector<std::unique_ptr<admin::LeaseT>>& leases, const Viewpoint& from);
Sheet client_sheet(const std::vector<std::unique_ptr<admin::ClientT>>& clients,
                   bool workers,
                   const Viewpoint& from);

}  // namespace dibs::ctl
