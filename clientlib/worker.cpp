// clientlib/worker.cpp -- the worker's calls: slots, assignments and words about them; and the
// provisioner's: its role, and answers to orders.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "clientlib/order.hpp"
#include "clientlib/session.hpp"
#include "clientlib/wire/payload_decoder.hpp"
#include "shm/pool_name.hpp"

namespace dibs::client {

Offered* Session::offered(uint64_t slot) const {
    Offered* end = slots + slot_count;
    Offered* found = std::find_if(slots, end, [&](const Offered& it) { return it.slot == slot; });
    return found != end ? found : nullptr;
}

bool Session::offers_name(uint64_t slot_name) const {
    return slot_name != 0 && std::any_of(slots, slots + slot_count, [&](const Offered& it) {
               return it.name == slot_name;
           });
}

void Session::remember_slot(const Offered& offered) {
    for (uint32_t i = 0; i < slot_count; ++i) {
        // Of the same name as one before it: that one is gone.
        const bool again = offered.name != 0 && slots[i].name == offered.name;
        if (slots[i].slot != offered.slot && !again) continue;
        parts_max += offered.parts - slots[i].parts;
        slots[i] = offered;
        return;
    }
    if (slot_count == slots_max) return;
    slots[slot_count] = offered;
    ++slot_count;
    parts_max += offered.parts;
}

void Session::forget_slot(uint64_t slot) {
    Offered* found = offered(slot);
    if (found == nullptr) return;
    --slot_count;
    parts_max -= found->parts;
    *found = slots[slot_count];
}

int Session::submit_with(shm::Submission& entry,
                         std::string_view payload,
                         uint64_t user_data,
                         Told told,
                         uint32_t& index) {
    if (!payload.empty()) {
        int code = told == Told::kResult ? need_credit() : DIBS_OK;
        if (code == DIBS_OK) code = need_line();
        if (code == DIBS_OK) code = need_payload(payload.size(), entry.payload_offset);
        if (code != DIBS_OK) return code;
        std::memcpy(up_payload + entry.payload_offset, payload.data(), payload.size());
        entry.payload_size = static_cast<uint32_t>(payload.size());
    }
    return submit(entry, user_data, told, index);
}

namespace {

int check_word(const dibs_session* session, int64_t wait_ns) {
    const int code = check_open(session);
    if (code != DIBS_OK) return code;
    return wait_ns < 0 ? DIBS_ENEGATIVE : DIBS_OK;
}

// A word about a slot, without an answer.
int say(dibs_session* session, shm::Submission& entry, int64_t wait_ns) {
    const int check_code = check_word(session, wait_ns);
    if (check_code != DIBS_OK) return check_code;
    const Told told = wait_ns == 0 ? Told::kNobody : Told::kResult;
    uint32_t index = kNone;
    const int code = session->submit(entry, 0, told, index);
    return code != DIBS_OK ? code : session->finish(index, told, wait_ns);
}

int say_with_answer(dibs_session* session,
                    shm::Submission& entry,
                    const void* answer,
                    size_t answer_size,
                    int64_t wait_ns) {
    const int check_code = check_word(session, wait_ns);
    if (check_code != DIBS_OK) return check_code;
    const Told told = wait_ns == 0 ? Told::kNobody : Told::kResult;
    uint32_t index = kNone;
    const int code = session->submit_answered(entry, answer, answer_size, 0, told, index);
    return code != DIBS_OK ? code : session->finish(index, told, wait_ns);
}

int say_text(dibs_session* session, shm::Submission& entry, const char* text, int64_t wait_ns) {
    const Told told = wait_ns == 0 ? Told::kNobody : Told::kResult;
    uint32_t index = kNone;
    const std::string_view bytes = text == nullptr ? "" : text;
    const int code = session->submit_with(entry, bytes, 0, told, index);
    return code != DIBS_OK ? code : session->finish(index, told, wait_ns);
}

shm::Submission word(shm::Op op, uint64_t slot, uint64_t round) {
    shm::Submission entry;
    entry.op = op;
    entry.id = slot;
    entry.fence = round;
    return entry;
}

// What the part has: texts, each ended by a zero byte.
bool read_part(const char* texts, size_t size, dibs_assignment& out) {
    for (size_t at = 0; at < size;) {
        const size_t length = strnlen(texts + at, size - at);
        if (length == size - at || out.resource_count == DIBS_RESOURCES_MAX) return false;
        out.resources[out.resource_count++] = texts + at;
        at += length + 1;
    }
    return true;
}

// Of a provisioner.
int describe_order(Session& session, const shm::Completion& completion, dibs_assignment& out) {
    out.kind = completion.kind == shm::CompletionKind::kCreate ? DIBS_CREATE : DIBS_STOP;
    out.number = static_cast<uint32_t>(completion.value);
    out.slot = completion.id;
    out.worker_tag = completion.user_data;
    if (out.kind == DIBS_STOP) return DIBS_OK;
    out.worker_tag = completion.tag;
    out.width = static_cast<uint32_t>(completion.value >> 32);
    write_order({completion.id, {completion.fence, completion.claim}}, session.last_order.text);
    out.body = session.last_order.text;
    out.body_size = kOrderText;
    free(session.last_order.sizes);
    session.last_order.sizes = reinterpret_cast<char*>(completion.user_data);  // Session::accept
    if (completion.data == shm::kNoRow) return DIBS_OK;
    if (session.last_order.sizes != nullptr &&
        read_part(session.last_order.sizes, completion.holder, out)) {
        return DIBS_OK;
    }
    out.resource_count = 0;
    return DIBS_EPAYLOAD;
}

int describe(Session& session, const shm::Completion& completion, dibs_assignment& out) {
    out = {};
    if (completion.kind >= shm::CompletionKind::kCreate) {
        return describe_order(session, completion, out);
    }
    const bool notice = completion.kind == shm::CompletionKind::kNotice;
    out.kind = completion.kind == shm::CompletionKind::kAssign ? DIBS_ASSIGN
               : notice                                        ? DIBS_REVOKING
                                                               : DIBS_REVOKE;
    out.number = notice ? completion.data : static_cast<uint32_t>(completion.value);
    if (notice) out.left_ns = static_cast<int64_t>(completion.value & INT64_MAX);
    if (out.kind == DIBS_ASSIGN) out.provision = static_cast<uint32_t>(completion.value >> 32);
    out.slot = completion.id;
    out.round = completion.fence;
    out.worker_tag = completion.user_data;
    out.claim = completion.claim;
    if (out.kind != DIBS_ASSIGN || completion.data == shm::kNoRow) return DIBS_OK;
    const uint64_t end = uint64_t{completion.data} + completion.holder + completion.tag;
    if (end > session.sizes.down_payload) return DIBS_EPAYLOAD;
    const uint8_t* payload = session.down_payload + completion.data;
    const auto* texts = reinterpret_cast<const char*>(payload + completion.holder);
    if (!read_part(texts, completion.tag, out)) {
        out.resource_count = 0;
        return DIBS_EPAYLOAD;
    }
    return decode_claim(payload, completion.holder, out) ? DIBS_OK : DIBS_EPAYLOAD;
}

}  // namespace

// Of the order that came last: copied, because its room is another one's from now on. The copy's
// address takes the place of the tag, and the tag that of its own field. Without memory there is
// none, and the order cannot be read.
void keep_sizes(Session& session) {
    Queue<shm::Completion>& queue = session.assignments;
    shm::Completion& order = queue.items[(queue.first + queue.count - 1) % queue.capacity];
    order.tag = static_cast<uint16_t>(order.user_data);
    order.user_data = 0;
    if (order.data == shm::kNoRow) return;
    if (uint64_t{order.data} + order.holder > session.sizes.down_payload) return;
    void* copy = malloc(order.holder);
    if (copy == nullptr) return;
    memcpy(copy, session.down_payload + order.data, order.holder);
    order.user_data = reinterpret_cast<uintptr_t>(copy);
}
}  // namespace dibs::client

using namespace dibs::client;
using dibs::shm::Op;
using dibs::shm::OpFlag::kOn;
using dibs::shm::OpFlag::kThenReady;
using dibs::shm::OpFlag::kTryAgain;

int dibs_announce(dibs_session* session,
                  uint32_t pool,
                  const dibs_announce_options* options,
                  int64_t wait_ns,
                  uint64_t* slot) {
    int code = check_word(session, wait_ns);
    if (code != DIBS_OK) return code;
    if (slot == nullptr || wait_ns == 0) return DIBS_EARGUMENT;
    dibs_announce_options known;
    code = read_options(options, &known, sizeof known, sizeof known);
    if (code != DIBS_OK) return code;
    uint32_t index = kNone;
    code = session->submit_announce(pool, known, 0, Told::kResult, index);
    if (code != DIBS_OK) return code;
    session->publish();
    dibs_completion out = {};
    code = session->await_answer(index, wait_ns, out);
    if (code != DIBS_OK) return code;
    if (out.code == DIBS_OK) *slot = out.slot;
    return out.code;
}

int dibs_next_assignment(dibs_session* session, int64_t timeout_ns, dibs_assignment* assignment) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (assignment == nullptr) return DIBS_EARGUMENT;
    if (timeout_ns < 0) return DIBS_ENEGATIVE;
    Wait wait(*session, timeout_ns);
    for (;;) {
        const bool came = wait.until(Awaited::kAssignment);
        if (session->assignments.count == 0) {
            if (session->end_code != 0) return session->end_code;
            return came ? DIBS_EUNREAD : DIBS_ETIMEDOUT;
        }
        const int described = describe(*session, session->assignments.pop(), *assignment);
        // Unread when its slot was withdrawn: the room may be another slot's by now.
        const bool is_gone = assignment->kind != DIBS_CREATE && assignment->resource_count == 0 &&
                             session->offered(assignment->slot) == nullptr;
        if (described == DIBS_EPAYLOAD && is_gone) continue;
        return described;
    }
}

int dibs_ready(dibs_session* session, uint64_t slot, uint64_t round, int64_t wait_ns) {
    dibs::shm::Submission entry = word(Op::kReady, slot, round);
    return say(session, entry, wait_ns);
}

int dibs_confirm(dibs_session* session,
                 uint64_t slot,
                 uint64_t round,
                 const void* answer,
                 size_t answer_size,
                 int64_t wait_ns) {
    dibs::shm::Submission entry = word(Op::kConfirm, slot, round);
    return say_with_answer(session, entry, answer, answer_size, wait_ns);
}

int dibs_refuse(dibs_session* session,
                uint64_t slot,
                uint64_t round,
                int64_t code,
                int try_again,
                int64_t wait_ns) {
    dibs::shm::Submission entry = word(Op::kRefuse, slot, round);
    dibs::shm::set_key_word(entry, static_cast<uint64_t>(code));
    if (try_again != 0) entry.flags |= kTryAgain;
    return say(session, entry, wait_ns);
}

int dibs_done(dibs_session* session,
              uint64_t slot,
              uint64_t round,
              const void* answer,
              size_t answer_size,
              int then_ready,
              int64_t wait_ns) {
    dibs::shm::Submission entry = word(Op::kDone, slot, round);
    if (then_ready != 0) entry.flags |= kThenReady;
    return say_with_answer(session, entry, answer, answer_size, wait_ns);
}

int dibs_withdraw(dibs_session* session, uint64_t slot, int64_t wait_ns) {
    dibs::shm::Submission entry = word(Op::kWithdraw, slot, 0);
    const int code = say(session, entry, wait_ns);
    if (code == DIBS_OK) session->forget_slot(slot);
    return code;
}

int dibs_protect(dibs_session* session, uint64_t slot, int on, int64_t wait_ns) {
    dibs::shm::Submission entry = word(Op::kProtect, slot, 0);
    if (on != 0) entry.flags |= kOn;
    return say(session, entry, wait_ns);
}

int dibs_provide(
    dibs_session* session, uint32_t pool, const char* type, uint32_t tag, int on, int64_t wait_ns) {
    const int code = check_open(session);
    if (code != DIBS_OK) return code;
    if (wait_ns < 0) return DIBS_ENEGATIVE;
    if (type == nullptr || tag > UINT16_MAX) return DIBS_EARGUMENT;
    if (pool > UINT16_MAX) return DIBS_EPOOL;  // a set, say
    if (!dibs::shm::is_pool_name(type, std::strlen(type))) return DIBS_ENAME;
    dibs::shm::Submission entry;
    entry.op = Op::kProvide;
    entry.pool = static_cast<uint16_t>(pool);
    entry.tag = static_cast<uint16_t>(tag);
    if (on != 0) entry.flags |= dibs::shm::OpFlag::kOn;
    return say_text(session, entry, type, wait_ns);
}

int dibs_provisioned(dibs_session* session,
                     uint64_t order,
                     int answer,
                     int scope,
                     const char* quota_group,
                     int64_t wait_ns) {
    const int code = check_open(session);
    if (code != DIBS_OK) return code;
    if (wait_ns < 0) return DIBS_ENEGATIVE;
    if (answer < DIBS_CREATED || answer > DIBS_NOT_STARTED || scope < DIBS_SCOPE_POOL ||
        scope > DIBS_SCOPE_TYPE ||
        (quota_group != nullptr && std::strlen(quota_group) > dibs::shm::kTypeWordMax)) {
        return DIBS_EARGUMENT;
    }
    dibs::shm::Submission entry;
    entry.op = Op::kProvisioned;
    entry.id = order;
    entry.units = static_cast<uint16_t>(answer);
    entry.tag = static_cast<uint16_t>(scope);
    return say_text(session, entry, quota_group, wait_ns);
}
