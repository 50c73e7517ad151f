// broker/admin/desk_types.cpp -- tells what elastic pools make, and of which types.
//
// Whether a type has a provisioner is public, and so is its account; which process that is only its
// user and administrators see.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/admin/desk.hpp"
#include "broker/core/look.hpp"

namespace dibs {

using core::Look;

std::unique_ptr<admin::ElasticT> Desk::elastic_row(uint32_t pool) const {
    const shm::ElasticRow& row = Look::elastic(core_, pool);
    const Look::OfElastic has = Look::of_elastic(core_, pool);
    auto told = std::make_unique<admin::ElasticT>();
    told->workers_max = row.workers_max;
    told->workers_min = row.workers_min;
    told->spare = row.spare;
    told->idle_timeout_ns = row.idle_timeout_ns;
    told->boot_timeout_ns = row.boot_timeout_ns;
    told->ordered = row.ordered;
    told->limit = row.limit;
    told->at_quota = has.at_quota;
    told->quota_ns = left(row.quota_until_ns);
    told->quota_below = told->quota_ns != 0 ? row.quota_below : 0;
    told->headroom = has.headroom;
    return told;
}

std::unique_ptr<admin::TypeT> Desk::type_row(const AdminJob& job, uint32_t row) const {
    const shm::TypeRow& type = Look::type(core_, row);
    auto told = std::make_unique<admin::TypeT>();
    told->row = row;
    told->pool = name_of(type.pool);
    told->name.assign(type.name, type.name_size);
    told->cost = type.cost;
    told->capacity_ns =
        left(std::max(type.capacity_until_ns, Look::elastic(core_, type.pool).everything_until_ns));
    told->failed_ns = left(type.failed_until_ns);
    told->going = (type.flags & shm::TypeFlag::kGoing) != 0;
    told->provided = type.session != shm::kNoRow;
    if (!told->provided) return told;
    told->account = account_of(type.session);
    told->full = sees(job, type.session);
    if (!told->full) return told;
    told->client = client_of(type.session);
    told->uid = core_.session(type.session).uid;
    told->pid = core_.session(type.session).pid;
    return told;
}

uint32_t Desk::count_by_type(AdminJob& job, uint32_t row) const {
    const shm::SlotRow& slot = core_.slot(row);
    if (slot.state == shm::SlotState::kFree || slot.type == shm::kNoRow) return 0;
    auto& types = job.answer.types;
    auto found = std::find_if(
        types.begin(), types.end(), [&](const auto& type) { return type->row == slot.type; });
    const bool is_new = found == types.end();
    if (is_new) {
        found = types.insert(found, std::make_unique<admin::TypeT>());
        (*found)->row = slot.type;
    }
    ++(slot.state == shm::SlotState::kOrdered ? (*found)->ordered : (*found)->workers);
    return is_new ? 1 : 0;
}

}  // namespace dibs
