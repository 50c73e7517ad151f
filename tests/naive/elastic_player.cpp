// tests/naive/elastic_player.cpp -- plays the steps that only elastic pools look at.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/core.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/player.hpp"

namespace dibs::naive {

template <class CoreType>
void Player<CoreType>::set_type(const Step& step) {
    core::TypeConfig config;
    config.name = step.name;
    config.pool = journal_.pools.at(step.pool).name;
    config.cost = step.type.cost;
    config.provider_type = step.type.provider_type;
    config.preemptible = step.type.preemptible;
    config.quota_group = step.type.quota_group;
    const std::vector<std::string_view> labels(step.labels.begin(), step.labels.end());
    config.labels = labels;
    std::string why;
    tell_accepted(step, core_.set_type(config, &why));
}

template <class CoreType>
void Player<CoreType>::delete_type(const Step& step) {
    DecisionLine line;
    line.reason = core_.apply(core::DeleteType{step.name, journal_.pools.at(step.pool).name});
    line.user_data = step.label;
    listen();
    lines_.push_back(line);
}

template <class CoreType>
void Player<CoreType>::provide(const Step& step) {
    core::Provide provide;
    provide.session = session_row(step.session);
    provide.pool = pool_row(step.pool);
    provide.type = step.name;
    provide.on = step.on;
    provide.user_data = step.label;
    core_.apply(provide);
}

template <class CoreType>
void Player<CoreType>::provisioned(const Step& step) {
    core::Provisioned provisioned;
    provisioned.session = session_row(step.session);
    provisioned.slot = slot_id(step.subject);
    provisioned.answer = step.answer;
    provisioned.scope = step.scope;
    provisioned.quota_group = step.name;
    provisioned.user_data = step.label;
    core_.apply(provisioned);
}

template void Player<NaiveCore>::set_type(const Step&);
template void Player<NaiveCore>::delete_type(const Step&);
template void Player<NaiveCore>::provide(const Step&);
template void Player<NaiveCore>::provisioned(const Step&);
template void Player<core::Core>::set_type(const Step&);
template void Player<core::Core>::delete_type(const Step&);
template void Player<core::Core>::provide(const Step&);
template void Player<core::Core>::provisioned(const Step&);

}  // namespace dibs::naive
