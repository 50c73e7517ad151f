// clientlib/announce.cpp -- puts announcements of slots into the submission ring.
// SPDX-License-Identifier: Apache-2.0
#include "clientlib/order.hpp"
#include "clientlib/pool_set.hpp"
#include "clientlib/session.hpp"
#include "clientlib/wire/payload_encoder.hpp"

#include <cstring>

namespace dibs::client {

using shm::Op;

namespace {

// Distinguishes a slot without keeping its name, which is unique in its pool: 64 bits of FNV-1a. 0:
// it has no name.
uint64_t slot_name(uint32_t pool, const char* name) {
    if (name == nullptr) return 0;
    uint64_t hash = 0xcbf29ce484222325ULL ^ pool;
    for (; *name != 0; ++name)
        hash = (hash ^ static_cast<uint8_t>(*name)) * 0x100000001b3ULL;
    return hash | 1;
}

}  // namespace

int Session::submit_announce(uint32_t pool,
                             const dibs_announce_options& options,
                             uint64_t user_data,
                             Told told,
                             uint32_t& index) {
    int code = check_pool(*this, pool);
    if (code == DIBS_OK && options.name != nullptr && !good_name(options.name)) code = DIBS_ENAME;
    if (code == DIBS_OK) code = check_labels(options.labels, options.label_count);
    if (code == DIBS_OK) code = check_pairs(options.attributes, options.attribute_count);
    const uint64_t named = code == DIBS_OK ? slot_name(pool, options.name) : 0;
    const bool again = offers_name(named);
    if (code == DIBS_OK && (!good_amounts(options.resources, options.resource_count) ||
                            options.parts > DIBS_UNITS_MAX)) {
        code = DIBS_EVECTOR;
    }
    Order order;
    if (code == DIBS_OK && options.order != nullptr && !read_order(options.order, &order)) {
        code = DIBS_EARGUMENT;
    }
    const uint64_t more = (again ? 0U : 1U) + uint64_t{options.parts};
    if (code == DIBS_OK && more != 0) code = need_slot(more);
    if (code == DIBS_OK) {
        code = need_credit(1 + shm::kCompletionsPerSlot * static_cast<uint32_t>(more));
    }
    if (code == DIBS_OK) code = need_line();
    if (code != DIBS_OK) return code;
    if (over != 0) free_over_tags(false);
    settle();

    shm::Submission entry;
    const AnnounceContent content = {options.name,
                                     options.labels,
                                     options.label_count,
                                     options.attributes,
                                     options.attribute_count,
                                     options.resources,
                                     options.resource_count,
                                     options.parts};
    const size_t size = encode_announce(content, nullptr);
    if (size > DIBS_PAYLOAD_MAX) return DIBS_EPAYLOAD;
    code = need_payload(size, entry.payload_offset);
    if (code != DIBS_OK) return code;
    encode_announce(content, up_payload + entry.payload_offset);
    entry.payload_size = static_cast<uint32_t>(size);
    entry.op = Op::kAnnounce;
    entry.pool = static_cast<uint16_t>(pool);
    entry.id = options.worker_tag;
    entry.fence = order.id;
    static_assert(sizeof order.token == sizeof entry.key);
    std::memcpy(entry.key, order.token.data(), sizeof entry.key);
    if (options.is_protected != 0) entry.flags |= shm::OpFlag::kOn;
    if (options.ready != 0) entry.flags |= shm::OpFlag::kThenReady;
    // Its result says which slot it is, even if no caller wants it.
    code = submit(entry, user_data, Told::kResult, index);
    if (code != DIBS_OK) return code;
    answers[index].discarded = told == Told::kNobody;
    answers[index].slot_name = named;
    dibs_pool_limits limits = {};
    limits.size = sizeof limits;
    const bool known = dibs_describe(static_cast<dibs_session*>(this), pool, &limits) == DIBS_OK;
    answers[index].answer_max = known ? limits.answer_max : UINT32_MAX;  // else the broker judges
    answers[index].new_slot = !again;
    if (!again) ++new_slots;
    answers[index].parts = options.parts;
    parts_max += options.parts;
    return code;
}

}  // namespace dibs::client
