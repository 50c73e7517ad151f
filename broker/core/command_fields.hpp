// broker/core/command_fields.hpp -- lists the fields of each command once, for every form of it.
//
// A form (the binary recording, its replay) walks over them:
//   each_field(Of<Claim>{}, [&](const char* name, auto member, auto... kind) { ... });
// A field's kind says what its type alone does not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/core/command_ref.hpp"

namespace dibs::core {

template <class Command>
struct Of {
    using Type = Command;
};

struct Bytes {};           // text that may hold any byte
struct SlotAttributes {};  // of each slot "key=value" texts, each ended by a zero byte

constexpr void each_field(Of<PoolConfig>, const auto& visit) {
    visit("name", &PoolConfig::name);
    visit("kind", &PoolConfig::kind);
    visit("slots", &PoolConfig::slots);
    visit("slot_attributes", &PoolConfig::slot_attributes, SlotAttributes{});
    visit("when_busy", &PoolConfig::when_busy);
    visit("units_max", &PoolConfig::units_max);
    visit("backlog_max", &PoolConfig::backlog_max);
    visit("unconfirmed_max", &PoolConfig::unconfirmed_max);
    visit("payload_max", &PoolConfig::payload_max);
    visit("answer_max", &PoolConfig::answer_max);
    visit("attributes_max", &PoolConfig::attributes_max);
    visit("reservation_ttl_ns", &PoolConfig::reservation_ttl_ns);
    visit("retry_after_ns", &PoolConfig::retry_after_ns);
    visit("interval_max_ns", &PoolConfig::interval_max_ns);
    visit("grace_ns", &PoolConfig::grace_ns);
    visit("release_is_ready", &PoolConfig::release_is_ready);
    visit("required_label", &PoolConfig::required_label);
    visit("expiry", &PoolConfig::expiry);
    visit("order", &PoolConfig::order);
    visit("account_expiry_ns", &PoolConfig::account_expiry_ns);
    visit("promote_threshold_micros", &PoolConfig::promote_threshold);
    visit("demote_threshold_micros", &PoolConfig::demote_threshold);
    visit("preemption_disabled", &PoolConfig::preemption_disabled);
    visit("request_age_max_ns", &PoolConfig::request_age_max_ns);
    visit("queue_timeout_ns", &PoolConfig::queue_timeout_ns);
    visit("is_transient", &PoolConfig::is_transient);
    visit("quantum_ns", &PoolConfig::quantum_ns);
    visit("park", &PoolConfig::park);
    visit("vector", &PoolConfig::vector);
    visit("workers_max", &PoolConfig::workers_max);
    visit("workers_min", &PoolConfig::workers_min);
    visit("spare", &PoolConfig::spare);
    visit("quota_estimate", &PoolConfig::quota_estimate);
    visit("creates_max", &PoolConfig::creates_max);
    visit("create_throttle_ns", &PoolConfig::create_throttle_ns);
    visit("quiet_ns", &PoolConfig::quiet_ns);
    visit("quota_error_ns", &PoolConfig::quota_error_ns);
    visit("capacity_error_ns", &PoolConfig::capacity_error_ns);
    visit("idle_timeout_ns", &PoolConfig::idle_timeout_ns);
    visit("boot_timeout_ns", &PoolConfig::boot_timeout_ns);
    visit("price_factor_permille", &PoolConfig::price_factor_permille);
    visit("dispatch", &PoolConfig::dispatch);
    visit("supervisor_permille", &PoolConfig::supervisor_permille);
    visit("attempts_max", &PoolConfig::attempts_max);
    visit("stale_lock_timeout_ns", &PoolConfig::stale_lock_timeout_ns);
    visit("probe_timeout_ns", &PoolConfig::probe_timeout_ns);
    visit("gather_ns", &PoolConfig::gather_ns);
    visit("create_min", &PoolConfig::create_min);
    visit("gang_max", &PoolConfig::gang_max);
}

constexpr void each_field(Of<Amount>, const auto& visit) {
    visit("name", &Amount::name);
    visit("amount", &Amount::amount);
}

constexpr void each_field(Of<DeletePool>, const auto& visit) {
    visit("pool", &DeletePool::pool);
    visit("when_unused", &DeletePool::when_unused);
}

constexpr void each_field(Of<AccountConfig>, const auto& visit) {
    visit("name", &AccountConfig::name);
    visit("rate_micros", &AccountConfig::rate);
    visit("charge_max_ns", &AccountConfig::charge_max_ns);
    visit("fanout_max", &AccountConfig::fanout_max);
    visit("label_limits", &AccountConfig::label_limits);
    visit("free_tasks_disabled", &AccountConfig::free_tasks_disabled);
    visit("balance_micros", &AccountConfig::balance);
    visit("keep_balance", &AccountConfig::keep_balance);
    visit("of_file", &AccountConfig::of_file);
}

constexpr void each_field(Of<AccountConfig::Limit>, const auto& visit) {
    visit("key", &AccountConfig::Limit::key);
    visit("limit", &AccountConfig::Limit::limit);
}

constexpr void each_field(Of<DeleteAccount>, const auto& visit) {
    visit("account", &DeleteAccount::account);
}

constexpr void each_field(Of<ResetBalance>, const auto& visit) {
    visit("account", &ResetBalance::account);
    visit("balance_micros", &ResetBalance::balance);
}

constexpr void each_field(Of<SessionOpen>, const auto& visit) {
    visit("uid", &SessionOpen::uid);
    visit("gid", &SessionOpen::gid);
    visit("pid", &SessionOpen::pid);
    visit("start_time", &SessionOpen::start_time);
    visit("tags_max", &SessionOpen::tags_max);
    visit("submission_entries", &SessionOpen::submission_entries);
    visit("completion_entries", &SessionOpen::completion_entries);
    visit("up_payload_size", &SessionOpen::up_payload_size);
    visit("down_payload_size", &SessionOpen::down_payload_size);
    visit("account", &SessionOpen::account);
    visit("tree", &SessionOpen::tree);
}

constexpr void each_field(Of<SessionDeath>, const auto& visit) {
    visit("session", &SessionDeath::session);
}

constexpr void each_field(Of<HolderDied>, const auto& visit) {
    visit("session", &HolderDied::session);
}

constexpr void each_field(Of<Claim>, const auto& visit) {
    visit("session", &Claim::session);
    visit("tag", &Claim::tag);
    visit("units", &Claim::units);
    visit("pool", &Claim::pool);
    visit("user_data", &Claim::user_data);
    visit("timeout_ns", &Claim::timeout_ns);
    visit("deadline_ns", &Claim::deadline_ns);
    visit("interval_ns", &Claim::interval_ns);
    visit("key", &Claim::key);
    visit("when_busy_given", &Claim::when_busy_given);
    visit("when_busy", &Claim::when_busy);
    visit("payload", &Claim::payload);
    visit("room", &Claim::room);
    visit("room_lines", &Claim::room_lines);
    visit("refusal", &Claim::refusal);
    visit("terms", &Claim::terms);
    visit("priority", &Claim::priority);
    visit("by_word", &Claim::by_word);
    visit("min", &Claim::least);
    visit("max", &Claim::most);
    visit("offer", &Claim::offer);
    visit("meta", &Claim::meta, Bytes{});
    visit("route", &Claim::route);
    visit("also", &Claim::also);
    visit("member", &Claim::member);
}

constexpr void each_field(Of<MemberOf>, const auto& visit) {
    visit("application", &MemberOf::application);
    visit("task", &MemberOf::task);
    visit("group", &MemberOf::group);
    visit("priority", &MemberOf::priority);
}

constexpr void each_field(Of<Route>, const auto& visit) {
    visit("members", &Route::members);
    visit("group_cap", &Route::group_cap);
    visit("version", &Route::version);
    visit("cool_down_ns", &Route::cool_down_ns);
}

constexpr void each_field(Of<RouteMember>, const auto& visit) {
    visit("pool", &RouteMember::pool);
    visit("priority", &RouteMember::priority);
    visit("cap", &RouteMember::cap);
    visit("idle_seen", &RouteMember::idle_seen);
}

constexpr void each_field(Of<PoolUnits>, const auto& visit) {
    visit("pool", &PoolUnits::pool);
    visit("units", &PoolUnits::units);
}

constexpr void each_field(Of<ClaimTerms>, const auto& visit) {
    visit("account", &ClaimTerms::account);
    visit("labels", &ClaimTerms::labels);
    visit("provisionable", &ClaimTerms::provisionable);
    visit("preempt_mode", &ClaimTerms::preempt_mode);
    visit("preempt_grace_ns", &ClaimTerms::preempt_grace_ns);
    visit("requeue", &ClaimTerms::requeue);
    visit("enqueued_ns", &ClaimTerms::enqueued_ns);
    visit("confirmed_ns", &ClaimTerms::confirmed_ns);
}

constexpr void each_field(Of<PledgedClaim>, const auto& visit) {
    visit("claim", &PledgedClaim::claim);
}

constexpr void each_field(Of<Cancel>, const auto& visit) {
    visit("session", &Cancel::session);
    visit("tag", &Cancel::tag);
    visit("user_data", &Cancel::user_data);
}

constexpr void each_field(Of<Release>, const auto& visit) {
    visit("session", &Release::session);
    visit("broken", &Release::broken);
    visit("lease", &Release::lease);
    visit("fence", &Release::fence);
    visit("user_data", &Release::user_data);
}

constexpr void each_field(Of<Keepalive>, const auto& visit) {
    visit("session", &Keepalive::session);
    visit("lease", &Keepalive::lease);
    visit("fence", &Keepalive::fence);
    visit("interval_ns", &Keepalive::interval_ns);
    visit("user_data", &Keepalive::user_data);
}

constexpr void each_field(Of<Adopt>, const auto& visit) {
    visit("session", &Adopt::session);
    visit("tag", &Adopt::tag);
    visit("lease", &Adopt::lease);
    visit("fence", &Adopt::fence);
    visit("user_data", &Adopt::user_data);
    visit("room", &Adopt::room);
    visit("room_lines", &Adopt::room_lines);
    visit("refusal", &Adopt::refusal);
}

constexpr void each_field(Of<KillFailed>, const auto& visit) {
    visit("lease", &KillFailed::lease);
}

constexpr void each_field(Of<Harvest>, const auto& visit) {
    visit("lease", &Harvest::lease);
    visit("takes", &Harvest::takes);
    visit("parked", &Harvest::parked);
    visit("recalled", &Harvest::recalled);
}

constexpr void each_field(Of<Touch>, const auto& visit) {
    visit("lease", &Touch::lease);
    visit("value", &Touch::value);
}

constexpr void each_field(Of<Announce>, const auto& visit) {
    visit("session", &Announce::session);
    visit("pool", &Announce::pool);
    visit("worker_tag", &Announce::worker_tag);
    visit("name", &Announce::name);
    visit("labels", &Announce::labels);
    visit("attributes", &Announce::attributes, Bytes{});
    visit("is_protected", &Announce::is_protected);
    visit("ready", &Announce::ready);
    visit("room", &Announce::room);
    visit("user_data", &Announce::user_data);
    visit("refusal", &Announce::refusal);
    visit("vector", &Announce::resources);
    visit("parts", &Announce::parts);
    visit("order", &Announce::order);
    visit("type", &Announce::type);
}

constexpr void each_field(Of<WorkerWord>, const auto& visit) {
    visit("kind", &WorkerWord::kind);
    visit("try_again", &WorkerWord::try_again);
    visit("then_ready", &WorkerWord::then_ready);
    visit("session", &WorkerWord::session);
    visit("slot", &WorkerWord::slot);
    visit("round", &WorkerWord::round);
    visit("code", &WorkerWord::code);
    visit("user_data", &WorkerWord::user_data);
    visit("answer", &WorkerWord::answer);
}

constexpr void each_field(Of<Drain>, const auto& visit) {
    visit("pool", &Drain::pool);
    visit("on", &Drain::on);
    visit("number", &Drain::number);
    visit("if_idle_for_ns", &Drain::if_idle_for_ns);
}

constexpr void each_field(Of<Steer>, const auto& visit) {
    visit("kind", &Steer::kind);
    visit("lease", &Steer::lease);
    visit("interval_ns", &Steer::interval_ns);
    visit("session", &Steer::session);
    visit("tag", &Steer::tag);
    visit("number", &Steer::number);
}

constexpr void each_field(Of<Report>, const auto& visit) {
    visit("kind", &Report::kind);
    visit("pool", &Report::pool);
    visit("worker", &Report::worker);
    visit("claim", &Report::claim);
    visit("labels", &Report::labels);
    visit("event_ns", &Report::event_ns);
    visit("user_data", &Report::user_data);
}

constexpr void each_field(Of<Pull>, const auto& visit) {
    visit("pool", &Pull::pool);
    visit("workers", &Pull::workers);
    visit("event_ns", &Pull::event_ns);
    visit("user_data", &Pull::user_data);
}

constexpr void each_field(Of<Pull::Worker>, const auto& visit) {
    visit("worker", &Pull::Worker::name);
    visit("labels", &Pull::Worker::labels);
}

constexpr void each_field(Of<Unassign>, const auto& visit) {
    visit("pool", &Unassign::pool);
    visit("claim", &Unassign::claim);
    visit("worker", &Unassign::worker);
    visit("event_ns", &Unassign::event_ns);
    visit("error", &Unassign::error);
    visit("user_data", &Unassign::user_data);
}

constexpr void each_field(Of<UpdateClaim>, const auto& visit) {
    visit("claim", &UpdateClaim::claim);
    visit("account_given", &UpdateClaim::account_given);
    visit("account", &UpdateClaim::account);
    visit("labels_given", &UpdateClaim::labels_given);
    visit("labels", &UpdateClaim::labels);
    visit("provisionable_given", &UpdateClaim::provisionable_given);
    visit("provisionable", &UpdateClaim::provisionable);
    visit("priority_given", &UpdateClaim::priority_given);
    visit("priority", &UpdateClaim::priority);
    visit("event_ns", &UpdateClaim::event_ns);
    visit("user_data", &UpdateClaim::user_data);
}

constexpr void each_field(Of<TypeConfig>, const auto& visit) {
    visit("name", &TypeConfig::name);
    visit("pool", &TypeConfig::pool);
    visit("cost", &TypeConfig::cost);
    visit("provider_type", &TypeConfig::provider_type);
    visit("preemptible", &TypeConfig::preemptible);
    visit("quota_group", &TypeConfig::quota_group);
    visit("labels", &TypeConfig::labels);
}

constexpr void each_field(Of<DeleteType>, const auto& visit) {
    visit("name", &DeleteType::name);
    visit("pool", &DeleteType::pool);
}

constexpr void each_field(Of<Provide>, const auto& visit) {
    visit("session", &Provide::session);
    visit("pool", &Provide::pool);
    visit("type", &Provide::type);
    visit("tag", &Provide::tag);
    visit("on", &Provide::on);
    visit("user_data", &Provide::user_data);
}

constexpr void each_field(Of<Provisioned>, const auto& visit) {
    visit("session", &Provisioned::session);
    visit("slot", &Provisioned::slot);
    visit("answer", &Provisioned::answer);
    visit("scope", &Provisioned::scope);
    visit("quota_group", &Provisioned::quota_group);
    visit("user_data", &Provisioned::user_data);
}

constexpr void each_field(Of<EntryReport>, const auto& visit) {
    visit("pool", &EntryReport::pool);
    visit("claim", &EntryReport::claim);
    visit("state_given", &EntryReport::state_given);
    visit("state", &EntryReport::state);
    visit("priority_given", &EntryReport::priority_given);
    visit("priority", &EntryReport::priority);
    visit("supervisor_given", &EntryReport::supervisor_given);
    visit("supervisor", &EntryReport::supervisor);
    visit("types_given", &EntryReport::types_given);
    visit("types", &EntryReport::types);
    visit("event_ns", &EntryReport::event_ns);
    visit("user_data", &EntryReport::user_data);
}

constexpr void each_field(Of<QueueRead>, const auto& visit) {
    visit("pool", &QueueRead::pool);
    visit("started_ns", &QueueRead::started_ns);
    visit("claims", &QueueRead::claims);
    visit("failed", &QueueRead::failed);
    visit("user_data", &QueueRead::user_data);
}

constexpr void each_field(Of<QueueOperation>, const auto& visit) {
    visit("pool", &QueueOperation::pool);
    visit("claim", &QueueOperation::claim);
    visit("word", &QueueOperation::word);
    visit("user_data", &QueueOperation::user_data);
}

constexpr void each_field(Of<OperationDone>, const auto& visit) {
    visit("pool", &OperationDone::pool);
    visit("claim", &OperationDone::claim);
    visit("ok", &OperationDone::ok);
    visit("error", &OperationDone::error);
    visit("user_data", &OperationDone::user_data);
}

constexpr void each_field(Of<WorkerReport>, const auto& visit) {
    visit("pool", &WorkerReport::pool);
    visit("worker", &WorkerReport::worker);
    visit("type", &WorkerReport::type);
    visit("state", &WorkerReport::state);
    visit("event_ns", &WorkerReport::event_ns);
    visit("user_data", &WorkerReport::user_data);
}

constexpr void each_field(Of<ProcessReport>, const auto& visit) {
    visit("pool", &ProcessReport::pool);
    visit("worker", &ProcessReport::worker);
    visit("claim", &ProcessReport::claim);
    visit("exited_ns", &ProcessReport::exited_ns);
    visit("user_data", &ProcessReport::user_data);
}

constexpr void each_field(Of<Probe>, const auto& visit) {
    visit("pool", &Probe::pool);
    visit("worker", &Probe::worker);
    visit("ok", &Probe::ok);
    visit("started_ns", &Probe::started_ns);
    visit("user_data", &Probe::user_data);
}

constexpr void each_field(Of<SetBehaviour>, const auto& visit) {
    visit("pool", &SetBehaviour::pool);
    visit("number", &SetBehaviour::number);
    visit("behaviour", &SetBehaviour::behaviour);
    visit("user_data", &SetBehaviour::user_data);
}

constexpr void each_field(Of<GroupSpec>, const auto& visit) {
    visit("name", &GroupSpec::name);
    visit("members", &GroupSpec::members);
    visit("resource", &GroupSpec::resource);
}

constexpr void each_field(Of<AddApplication>, const auto& visit) {
    visit("session", &AddApplication::session);
    visit("uid", &AddApplication::uid);
    visit("application", &AddApplication::application);
    visit("pool", &AddApplication::pool);
    visit("priority", &AddApplication::priority);
    visit("groups", &AddApplication::groups);
    visit("placeholder_timeout_ns", &AddApplication::placeholder_timeout_ns);
    visit("style", &AddApplication::style);
    visit("parameters", &AddApplication::parameters);
    visit("tags", &AddApplication::tags, Bytes{});
    visit("created_ns", &AddApplication::created_ns);
    visit("manager_timeout_ns", &AddApplication::manager_timeout_ns);
    visit("recover", &AddApplication::recover);
    visit("user_data", &AddApplication::user_data);
}

constexpr void each_field(Of<ApplicationEvent>, const auto& visit) {
    visit("kind", &ApplicationEvent::kind);
    visit("session", &ApplicationEvent::session);
    visit("uid", &ApplicationEvent::uid);
    visit("application", &ApplicationEvent::application);
    visit("task", &ApplicationEvent::task);
    visit("group", &ApplicationEvent::group);
    visit("priority", &ApplicationEvent::priority);
    visit("assigned", &ApplicationEvent::assigned);
    visit("user_data", &ApplicationEvent::user_data);
}

}  // namespace dibs::core
