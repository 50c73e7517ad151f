// broker/journal/replayer_provision.cpp -- replays the words of provisioners of elastic pools.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/look.hpp"
#include "broker/journal/journal_texts.hpp"
#include "broker/journal/replayer.hpp"

namespace dibs::ctl {

void Replayer::learn_type(const core::Decision& decision) {
    if (decision.type.is_none()) return;
    const shm::TypeRow& type = core::Look::type(*core_, decision.type);
    map_.name_type(decision.type, {type.name, type.name_size});
}

void Replayer::apply(const journal::Provide& provide) {
    core_->apply(core::Provide{
        .session = map_.live_session(provide.session()->str()).row,
        .pool = pool_row(provide.pool()),
        .type = view(provide.type()),
        .on = provide.on(),
        .user_data = map_.add_operation({"provide", "type", provide.type()->str()}),
    });
}

void Replayer::apply(const journal::Provisioned& provisioned) {
    const NameMap::Slot& order = map_.slot(provisioned.worker()->str());
    core_->apply(core::Provisioned{
        .session = speaker(provisioned.session(), order.provisioner),
        .slot = order.id,
        .answer = static_cast<core::Provisioned::Answer>(provisioned.answer()),
        .scope = static_cast<core::Provisioned::Scope>(provisioned.scope()),
        .quota_group = view(provisioned.quota_group()),
        .user_data = map_.add_operation({"provisioned", "worker", order.name}),
    });
}

}  // namespace dibs::ctl
