// broker/ctl/app/app_sheet.hpp -- lays out applications, their groups and their tasks as sheets.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "schemas/admin_generated.h"

namespace dibs::ctl {

using Applications = std::vector<std::unique_ptr<admin::ApplicationT>>;
using Tasks = std::vector<std::unique_ptr<admin::TaskT>>;

Sheet application_sheet(const Applications& applications, const Viewpoint& from);
Sheet group_sheet(const std::vector<std::unique_ptr<admin::GroupT>>& groups);
Sheet task_sheet(const Tasks& tasks);
// The groups and tasks of an application that is shown alone, in JSON.
void add_parts(const admin::ApplicationT& application, const Tasks& tasks, Sheet* sheet);

}  // namespace dibs::ctl
