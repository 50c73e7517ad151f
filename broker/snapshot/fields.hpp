// broker/snapshot/fields.hpp -- maps row fields to snapshot fields, once for both directions.
//
// `visit(of_row, of_table)` copies one way or the other; text, keys and lists have calls of their
// own. Links into the arena are missing here: the code that copies a row copies its bytes in the
// arena.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dibs::snapshot {

template <class Row, class Told, class Visit>
void each_field_of_pool(Row& row, Told& told, const Visit& visit) {
    visit(row.head.generation, told.generation);
    visit(row.state, told.state);
    visit(row.kind, told.kind);
    visit(row.order, told.order);
    visit(row.flags, told.flags);
    visit(row.ready_head, told.ready_head);
    visit(row.ready_tail, told.ready_tail);
    visit(row.idle, told.idle);
    visit(row.waiting, told.waiting);
    visit(row.confirming, told.confirming);
    visit(row.unconfirmed, told.unconfirmed);
    visit(row.leased, told.leased);
    visit(row.fence_next, told.fence_next);
    visit(row.idle_order_next, told.idle_order_next);
    visit(row.slots, told.slots);
    visit(row.reserved, told.reserved);
    visit(row.recovering, told.recovering);
    visit(row.unknown, told.unknown);
    visit(row.last_dispatch_ns, told.last_dispatch_ns);
    visit(row.granted_total, told.granted_total);
    visit(row.accepted_total, told.accepted_total);
    visit(row.hit_total, told.hit_total);
    visit(row.released_total, told.released_total);
    visit(row.number_next, told.number_next);
    visit(row.slots_wanted, told.slots_wanted);
    visit(row.demand_published, told.demand_published);
    visit(row.expired_total, told.expired_total);
    visit(row.cancelled_total, told.cancelled_total);
    visit(row.rejected_total, told.rejected_total);
    visit(row.turned_away_total, told.turned_away_total);
    visit(row.refused_total, told.refused_total);
    visit(row.skipped_total, told.skipped_total);
    visit(row.unqualified_total, told.unqualified_total);
    visit(row.units_max, told.units_max);
    visit(row.backlog_max, told.backlog_max);
    visit(row.unconfirmed_max, told.unconfirmed_max);
    visit(row.payload_max, told.payload_max);
    visit(row.answer_max, told.answer_max);
    visit(row.attributes_max, told.attributes_max);
    visit(row.when_busy, told.when_busy);
    visit(row.mode, told.mode);
    visit(row.reservation_ttl_ns, told.reservation_ttl_ns);
    visit(row.retry_after_ns, told.retry_after_ns);
    visit(row.interval_max_ns, told.interval_max_ns);
    visit(row.grace_ns, told.grace_ns);
    visit(row.kills_total, told.kills_total);
    visit(row.kills_failed_total, told.kills_failed_total);
    visit(row.saturated_until_ns, told.saturated_until_ns);
    visit.text(row.name_size, row.name, told.name);
    visit.text(row.required_label_size, row.required_label, told.required_label);
    visit(row.promote_threshold, told.promote_threshold);
    visit(row.demote_threshold, told.demote_threshold);
    visit(row.account_expiry_ns, told.account_expiry_ns);
    visit(row.request_age_max_ns, told.request_age_max_ns);
    visit(row.queue_timeout_ns, told.queue_timeout_ns);
    visit(row.requeued_total, told.requeued_total);
    visit(row.drained, told.drained);
    visit(row.quantum_us, told.quantum_us);
    visit(row.parked, told.parked);
    visit(row.resources_count, told.resources_count);
    visit(row.shared, told.shared);
    visit(row.parts, told.parts);
    visit.list(row.capacity, told.capacity);
    visit(row.gang_max, told.gang_max);
}

template <class Row, class Told, class Visit>
void each_field_of_session(Row& row, Told& told, const Visit& visit) {
    visit(row.head.generation, told.generation);
    visit(row.state, told.state);
    visit(row.tags_max, told.tags_max);
    visit(row.uid, told.uid);
    visit(row.pid, told.pid);
    visit(row.account, told.account);
    visit(row.claims, told.claims);
    visit(row.leases, told.leases);
    visit(row.slots, told.slots);
    visit(row.dying_cursor, told.dying_cursor);
    visit(row.submission_consumed, told.submission_consumed);
    visit(row.completion_tail, told.completion_tail);
    visit(row.start_time, told.start_time);
    visit(row.opened_ns, told.opened_ns);
    visit(row.gid, told.gid);
    visit(row.submission_entries, told.submission_entries);
    visit(row.completion_entries, told.completion_entries);
    visit(row.up_payload_size, told.up_payload_size);
    visit(row.down_payload_size, told.down_payload_size);
    visit(row.tree, told.tree);
}

template <class Row, class Told, class Visit>
void each_field_of_slot(Row& row, Told& told, const Visit& visit) {
    visit(row.head.generation, told.generation);
    visit(row.state, told.state);
    visit(row.flags, told.flags);
    visit(row.pool, told.pool);
    visit(row.holder, told.holder);
    visit(row.fence, told.fence);
    visit(row.holder_next, told.holder_next);
    visit(row.ready_next, told.ready_next);
    visit(row.ready_prev, told.ready_prev);
    visit(row.session, told.session);
    visit(row.number, told.number);
    visit(row.round, told.round);
    visit(row.idle_order, told.idle_order);
    visit(row.worker_tag, told.worker_tag);
    visit(row.reserved_until_ns, told.reserved_until_ns);
    visit(row.room, told.room);
    visit(row.label_set, told.label_set);
    visit(row.behaviour, told.behaviour);
    visit(row.idle_since_ns, told.idle_since_ns);
    visit(row.confirmed_ns, told.confirmed_ns);
    visit(row.modified_ns, told.modified_ns);
    visit(row.announced_ns, told.announced_ns);
    visit(row.part_of, told.part_of);
    visit(row.parts, told.parts);
    visit(row.parts_max, told.parts_max);
    visit(row.type, told.type);
    visit(row.order, told.order);
    visit(row.stop_told, told.stop_told);
    visit(row.boot_until_ns, told.boot_until_ns);
    visit(row.broken, told.broken);
    visit(row.entry, told.entry);  // or its group
    visit(row.index, told.index);
    visit(row.probe_ns, told.probe_ns);
    visit.text(row.name_size, row.name, told.name);
}

template <class Row, class Told, class Visit>
void each_field_of_claim(Row& row, Told& told, const Visit& visit) {
    visit(row.head.generation, told.generation);
    visit(row.state, told.state);
    visit(row.flags, told.flags);
    visit(row.pool, told.pool);
    visit(row.session, told.session);
    visit(row.arrival, told.arrival);
    visit(row.deadline_ns, told.deadline_ns);
    visit(row.user_data, told.user_data);
    visit(row.first_slot, told.first_slot);
    visit(row.units, told.units);
    visit(row.confirmed, told.confirmed);
    visit(row.tag, told.tag);
    visit(row.account_class, told.account_class);
    visit(row.attempts, told.attempts);
    visit(row.priority, told.priority);
    visit.key(row.key, told.key);
    visit(row.interval_ns, told.interval_ns);
    visit(row.reserved_until_ns, told.reserved_until_ns);
    visit(row.account, told.account);
    visit(row.room, told.room);
    visit(row.room_lines, told.room_lines);
    visit(row.label_set, told.label_set);
    visit(row.preferred_set, told.preferred_set);
    visit(row.mode, told.mode);
    visit(row.enqueued_ns, told.enqueued_ns);
    visit(row.confirmed_ns, told.confirmed_ns);
    visit(row.preempt_grace_ns, told.preempt_grace_ns);
    visit(row.lease, told.lease);
    visit(row.preempt_mode, told.preempt_mode);
    visit(row.several_first, told.several_first);
    visit(row.several_next, told.several_next);
    visit(row.task, told.task);
    visit(row.group, told.group);
}

template <class Row, class Told, class Visit>
void each_field_of_lease(Row& row, Told& told, const Visit& visit) {
    visit(row.head.generation, told.generation);
    visit(row.state, told.state);
    visit(row.mode, told.mode);
    visit(row.pool, told.pool);
    visit(row.session, told.session);
    visit(row.fence, told.fence);
    visit(row.expires_ns, told.expires_ns);
    visit(row.arrival, told.arrival);
    visit(row.interval_ns, told.interval_ns);
    visit(row.first_slot, told.first_slot);
    visit(row.units, told.units);
    visit(row.tag, told.tag);
    visit.key(row.key, told.key);
    visit(row.granted_ns, told.granted_ns);
    visit(row.kept_ns, told.kept_ns);
    visit(row.user_data, told.user_data);
    visit(row.grace_until_ns, told.grace_until_ns);
    visit(row.account, told.account);
    visit(row.room, told.room);
    visit(row.room_lines, told.room_lines);
    visit(row.account_class, told.account_class);
    visit(row.flags, told.flags);
    visit.list(row.cost, told.cost);
    visit(row.takes, told.takes);
    visit(row.wanted_ns, told.wanted_ns);
    visit(row.touched, told.touched);
    visit(row.several, told.several);
    visit(row.of_task, told.of_task);
}

template <class Row, class Told, class Visit>
void each_field_of_account(Row& row, Told& told, const Visit& visit) {
    visit(row.head.generation, told.generation);
    visit(row.state, told.state);
    visit(row.flags, told.flags);
    visit(row.fanout_max, told.fanout_max);
    visit.list(row.balance, told.balance);
    visit.list(row.rate, told.rate);
    visit(row.charged_ns, told.charged_ns);
    visit(row.charge_max_ns, told.charge_max_ns);
    visit.list(row.running, told.running);
    visit(row.held, told.held);
    visit(row.used_us, told.used_us);
    visit(row.counted_since_ns, told.counted_since_ns);
    visit.text(row.name_size, row.name, told.name);
}

template <class Row, class Told, class Visit>
void each_field_of_label_set(Row& row, Told& told, const Visit& visit) {
    visit(row.head.generation, told.generation);
    visit(row.references, told.references);
    visit(row.hash, told.hash);
    visit(row.count, told.count);
}

template <class Row, class Told, class Visit>
void each_field_of_type(Row& row, Told& told, const Visit& visit) {
    visit(row.state, told.state);
    visit(row.flags, told.flags);
    visit(row.pool, told.pool);
    visit(row.session, told.session);
    visit(row.cost, told.cost);
    visit(row.role, told.role);
    visit(row.label_set, told.label_set);
    visit(row.backoff_ns, told.backoff_ns);
    visit(row.failed_until_ns, told.failed_until_ns);
    visit(row.capacity_until_ns, told.capacity_until_ns);
    visit.text(row.name_size, row.name, told.name);
    visit.text(row.provider_type_size, row.provider_type, told.provider_type);
    visit.text(row.quota_group_size, row.quota_group, told.quota_group);
}

template <class Row, class Told, class Visit>
void each_field_of_elastic(Row& row, Told& told, const Visit& visit) {
    visit(row.limit, told.limit);
    visit(row.within_quota, told.within_quota);
    visit(row.quota_below, told.quota_below);
    visit(row.ordered, told.ordered);
    visit(row.overload_ns, told.overload_ns);
    visit(row.quota_until_ns, told.quota_until_ns);
    visit(row.everything_until_ns, told.everything_until_ns);
    visit(row.throttle_until_ns, told.throttle_until_ns);
    visit(row.quiet_ns, told.quiet_ns);
    visit(row.quota_error_ns, told.quota_error_ns);
    visit(row.capacity_error_ns, told.capacity_error_ns);
    visit(row.create_throttle_ns, told.create_throttle_ns);
    visit(row.idle_timeout_ns, told.idle_timeout_ns);
    visit(row.boot_timeout_ns, told.boot_timeout_ns);
    visit(row.quota_estimate, told.quota_estimate);
    visit(row.workers_max, told.workers_max);
    visit(row.workers_min, told.workers_min);
    visit(row.spare, told.spare);
    visit(row.creates_max, told.creates_max);
    visit(row.overloaded, told.overloaded);
    visit(row.headroom_told, told.headroom_told);
    visit(row.gather_ns, told.gather_ns);
    visit(row.gather_until_ns, told.gather_until_ns);
    visit(row.gathered, told.gathered);
    visit.list(row.create_min, told.create_min);
    visit(row.dispatch, told.dispatch);
    visit(row.phase, told.phase);
    visit(row.supervisor_permille, told.supervisor_permille);
    visit(row.attempts_max, told.attempts_max);
    visit(row.price_factor_permille, told.price_factor_permille);
    visit(row.entry_next, told.entry_next);
    visit(row.queue_read_ns, told.queue_read_ns);
    visit(row.stale_until_ns, told.stale_until_ns);
    visit(row.stale_lock_timeout_ns, told.stale_lock_timeout_ns);
    visit(row.probe_timeout_ns, told.probe_timeout_ns);
}

template <class Row, class Told, class Visit>
void each_field_of_entry(Row& row, Told& told, const Visit& visit) {
    visit(row.state, told.state);
    visit(row.op, told.op);
    visit(row.flags, told.flags);
    visit(row.pool, told.pool);
    visit(row.priority, told.priority);
    visit(row.lock_count, told.lock_count);
    visit(row.types, told.types);
    visit(row.number, told.number);
    visit(row.exited_ns, told.exited_ns);
    visit(row.worker, told.worker);
    visit(row.event_ns, told.event_ns);
    visit(row.changed_ns, told.changed_ns);
    visit(row.asked, told.asked);
    visit.text(row.name_size, row.name, told.name);
}

template <class Row, class Told, class Visit>
void each_field_of_app(Row& row, Told& told, const Visit& visit) {
    visit(row.head.generation, told.generation);
    visit(row.state, told.state);
    visit(row.style, told.style);
    visit(row.flags, told.flags);
    visit(row.pool, told.pool);
    visit(row.reason, told.reason);
    visit(row.number, told.number);
    visit(row.uid, told.uid);
    visit(row.manager, told.manager);
    visit(row.placeholder_until_ns, told.placeholder_until_ns);
    visit(row.manager_until_ns, told.manager_until_ns);
    visit(row.placeholder_timeout_ns, told.placeholder_timeout_ns);
    visit(row.manager_timeout_ns, told.manager_timeout_ns);
    visit(row.created_ns, told.created_ns);
    visit(row.ended_ns, told.ended_ns);
    visit(row.priority, told.priority);
    visit(row.first_group, told.first_group);
    visit(row.tasks, told.tasks);
    visit(row.claims, told.claims);
    visit(row.leases, told.leases);
    visit(row.placeholders, told.placeholders);
    visit.text(row.name_size, row.name, told.name);
}

template <class Row, class Told, class Visit>
void each_field_of_group(Row& row, Told& told, const Visit& visit) {
    visit(row.head.generation, told.generation);
    visit(row.state, told.state);
    visit(row.app, told.app);
    visit(row.next, told.next);
    visit(row.members, told.members);
    visit(row.bound, told.bound);
    visit(row.replaced, told.replaced);
    visit(row.claim, told.claim);
    visit(row.number, told.number);
    visit.list(row.resource, told.resource);
    visit.text(row.name_size, row.name, told.name);
}

template <class Row, class Told, class Visit>
void each_field_of_task(Row& row, Told& told, const Visit& visit) {
    visit(row.head.generation, told.generation);
    visit(row.state, told.state);
    visit(row.reason, told.reason);
    visit(row.app, told.app);
    visit(row.group, told.group);
    visit(row.claim, told.claim);
    visit(row.lease, told.lease);
    visit(row.priority, told.priority);
    visit(row.number, told.number);
    visit.text(row.name_size, row.name, told.name);
}

}  // namespace dibs::snapshot
