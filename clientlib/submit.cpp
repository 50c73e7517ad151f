// clientlib/submit.cpp -- puts operations into the submission ring, and cancels claims.
// On the way are checks, credit, tags, payload room and the bell.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "clientlib/offer_amounts.hpp"
#include "clientlib/pool_set.hpp"
#include "clientlib/session.hpp"
#include "clientlib/wire/payload_encoder.hpp"
#include "shm/board.hpp"

namespace dibs::client {

using shm::Op;

int read_options(const void* given, void* out, size_t known, size_t first) {
    size_t size = 0;
    std::memset(out, 0, known);
    if (given == nullptr) return DIBS_OK;
    std::memcpy(&size, given, sizeof size);
    if (size != first && (size < known || size > known + 1024)) return DIBS_ESIZE;
    // A newer caller's fields are fine as long as they ask for nothing.
    const auto* bytes = static_cast<const uint8_t*>(given);
    for (size_t i = known; i < size; ++i) {
        if (bytes[i] != 0) return DIBS_ESIZE;
    }
    std::memcpy(out, given, size < known ? size : known);
    return DIBS_OK;
}

// ---- room

void Session::release_lines() {
    const uint64_t consumed = shm::committed_submissions(*down);
    const uint64_t before = submissions.tail() - (submissions.entries() - submissions.room());
    if (!submissions.release_to(consumed) || consumed < before) {
        end(DIBS_ESESSION, DIBS_EMALFORMED);
        return;
    }
    if (consumed != before) {
        const uint64_t end = payload_ends[(consumed - 1) & (submissions.entries() - 1)];
        if (end > payload_head) payload_head = end;  // else it is from before begin_payloads()
    }
}

void Session::reclaim() {
    release_lines();
    // The broker posts the completions of what it has consumed first: drained now, the quiet
    // operations that failed leave their entries free.
    pump();
}

int Session::need_line() {
    if (submissions.room() > kCloseLines) return DIBS_OK;
    reclaim();
    if (submissions.room() > kCloseLines || end_code != 0) return end_code;
    look_whether_ended();
    return end_code != 0 ? end_code : DIBS_EFULL;
}

int Session::need_credit(uint32_t count) {
    if (credit_taken() + count <= credit) return DIBS_OK;
    pump();
    if (end_code != 0) return end_code;
    if (credit_taken() + count <= credit) return DIBS_OK;
    return stash.count != 0 ? DIBS_EUNREAD : DIBS_EFULL;
}

int Session::need_slot(uint64_t count) {
    return need_words(shm::kCompletionsPerSlot * count);
}

int Session::need_app() {
    return app_count < apps_max ? need_words(shm::kCompletionsPerApplication) : DIBS_ENOROOM;
}

int Session::need_words(uint64_t count) {
    // A quarter of the credit stays for the operations themselves.
    const auto fits = [this, count] {
        return shm::kCompletionsPerSlot * (slot_count + new_slots + uint64_t{parts_max}) +
                   shm::kCompletionsPerApplication * uint64_t{app_count} + count <=
               credit - credit / 4;
    };
    if (fits()) return DIBS_OK;
    pump();  // announcements may have been refused
    if (end_code != 0) return end_code;
    return fits() ? DIBS_OK : DIBS_ENOROOM;
}

// Nothing lies in the area: the next payload has all of it, wherever the last one ended.
void Session::begin_payloads() {
    const uint64_t area = sizes.up_payload;
    payload_tail = (payload_tail + area - 1) & ~(area - 1);
    payload_head = payload_tail;
}

int Session::need_payload(size_t size, uint32_t& offset) {
    const uint64_t area = sizes.up_payload;
    const uint64_t need = (size + 7) & ~uint64_t{7};
    if (need > area) return DIBS_EPAYLOAD;
    for (int tries = 0; tries < 2; ++tries) {
        if (payload_head == payload_tail) begin_payloads();
        const uint64_t place = payload_tail & (area - 1);
        const uint64_t skipped = place + need > area ? area - place : 0;
        if (payload_tail + skipped + need - payload_head <= area) {
            payload_tail += skipped;
            offset = static_cast<uint32_t>(payload_tail & (area - 1));
            payload_tail += need;
            return DIBS_OK;
        }
        if (tries == 0) reclaim();
        if (end_code != 0) return end_code;
    }
    look_whether_ended();
    return end_code != 0 ? end_code : DIBS_EFULL;
}

void Session::publish() {
    const uint32_t cpu = shm::current_cpu();
    if (cpu != cpu_told) {
        cpu_told = cpu;
        up->cpu.store(cpu, std::memory_order_relaxed);  // a hint: pairs with nothing
    }
    if (!shm::publish_submissions(*up, *down, submissions.tail())) return;
    rung_tail = submissions.tail();
    ring();
}

void Session::settle() {
    if (owed == 0 || end_code != 0) return;
    const uint64_t before = submissions.tail();
    bool awaited_there = false;
    for (uint32_t tag = 0; tag < sizes.tags && owed != 0; ++tag) {
        Tag& row = tags[tag];
        if (!row.cancel_owed && !row.release_owed && !row.room_owed) continue;
        // One line beyond the close's is reserved for the caller that has just made sure of it.
        if (submissions.room() <= kCloseLines + 1) release_lines();
        if (submissions.room() <= kCloseLines + 1 || end_code != 0) break;
        shm::Submission entry;
        entry.user_data = kDiscard;
        entry.flags = shm::OpFlag::kQuiet;
        entry.op = row.release_owed ? Op::kRelease : row.cancel_owed ? Op::kCancel : Op::kNop;
        entry.tag = static_cast<uint16_t>(tag);
        entry.id = entry.op == Op::kNop ? kItsRoomIsFree : row.lease;
        entry.fence = row.fence;
        if (row.release_owed) name_claim(entry, tag, row);
        push(entry);
        awaited_there |= entry.op != Op::kNop;
        --owed;
        if (entry.op == Op::kNop) row.room_owed = false;
        row.cancel_owed = false;
        if (row.release_owed) {
            row.release_owed = false;
            free_tag_row(tag);
        }
    }
    if (submissions.tail() == before) return;
    if (awaited_there) return publish();
    // The broker need not learn of freed rooms before it reads later entries: it is not woken.
    (void)shm::publish_submissions(*up, *down, submissions.tail());
    rung_tail = submissions.tail();
}

// ---- claims

bool good_name(const char* name) {
    const size_t size = strnlen(name, DIBS_NAME_MAX + 1);
    return size != 0 && size <= DIBS_NAME_MAX;
}

int check_labels(const char* const* labels, size_t count) {
    if (count > DIBS_LABELS_MAX || (count != 0 && labels == nullptr)) return DIBS_ELABELS;
    for (size_t i = 0; i < count; ++i) {
        if (labels[i] == nullptr || !good_name(labels[i])) return DIBS_ELABELS;
    }
    return DIBS_OK;
}

bool good_amounts(const char* const* texts, size_t count) {
    if (count > DIBS_RESOURCES_MAX || (count != 0 && texts == nullptr)) return false;
    for (size_t i = 0; i < count; ++i) {
        if (texts[i] == nullptr || std::strchr(texts[i], '=') == nullptr) return false;
    }
    return true;
}

int check_pairs(const dibs_option* options, size_t count) {
    if (count > DIBS_OPTIONS_MAX || (count != 0 && options == nullptr)) return DIBS_EOPTIONS;
    for (size_t i = 0; i < count; ++i) {
        if (options[i].key == nullptr || options[i].key[0] == 0) return DIBS_EOPTIONS;
    }
    return DIBS_OK;
}

bool has_control(const char* text) {
    for (; *text != 0; ++text) {
        if (static_cast<unsigned char>(*text) < 0x20 || *text == 0x7f) return true;
    }
    return false;
}

bool good_app_name(const char* name) {
    return name != nullptr && good_name(name) && !has_control(name);
}

namespace {

// A task names its application, and an application's claim its task.
bool good_member(const dibs_claim_options& options) {
    if ((options.application == nullptr) != (options.task == nullptr)) return false;
    if (options.application == nullptr) return options.group == nullptr;
    return good_app_name(options.application) && good_app_name(options.task) &&
           (options.group == nullptr || good_app_name(options.group));
}

int check_claim(const dibs_claim_options& options) {
    if (options.timeout_ns < 0 || options.interval_ns < 0) return DIBS_ENEGATIVE;
    if (options.units > DIBS_UNITS_MAX) return DIBS_EUNITS;
    if (options.when_busy < DIBS_BUSY_AS_POOL || options.when_busy > DIBS_BUSY_COLD) {
        return DIBS_EARGUMENT;
    }
    if (options.keep < DIBS_KEEP_BY_CALLS || options.keep > DIBS_KEEP_BY_WORD ||
        (options.keep == DIBS_KEEP_BY_WORD && options.interval_ns == 0)) {
        return DIBS_EARGUMENT;
    }
    if (options.body_size != 0 && options.body == nullptr) return DIBS_EARGUMENT;
    if (options.body_size > DIBS_PAYLOAD_MAX) return DIBS_EPAYLOAD;
    if (options.preempt < DIBS_PREEMPT_AS_POOL || options.preempt > DIBS_PREEMPT_NEVER ||
        options.priority < 0) {
        return DIBS_EARGUMENT;
    }
    if (options.preempt_grace_ns < 0) return DIBS_ENEGATIVE;
    if (options.account != nullptr && !good_name(options.account)) return DIBS_ENAME;
    if (!good_amounts(options.least, options.least_count) ||
        !good_amounts(options.most, options.most_count)) {
        return DIBS_EVECTOR;
    }
    if (options.meta != nullptr &&
        (strnlen(options.meta, DIBS_META_MAX + 1) > DIBS_META_MAX || has_control(options.meta))) {
        return DIBS_EPAYLOAD;
    }
    if (!good_member(options)) return DIBS_ENAME;
    if (options.offer != nullptr) {
        const int accepted = check_accept(options);
        if (accepted != DIBS_OK) return accepted;
    }
    if ((options.option_count | options.label_count | options.prefer_count) == 0) return DIBS_OK;
    int code = check_pairs(options.options, options.option_count);
    if (code == DIBS_OK) code = check_labels(options.labels, options.label_count);
    return code != DIBS_OK ? code : check_labels(options.prefer, options.prefer_count);
}

bool brings_terms(const dibs_claim_options& options) {
    return options.also_count != 0 || options.prefer_count != 0 || options.account != nullptr ||
           options.least_count != 0 || options.most_count != 0 || options.offer != nullptr ||
           options.meta != nullptr || options.application != nullptr || options.task != nullptr ||
           options.group != nullptr || (options.priority | options.preempt | options.requeue) != 0;
}

constexpr uint8_t kBusyFlags[] = {0, shm::OpFlag::kWait, shm::OpFlag::kReject, shm::OpFlag::kCold};

}  // namespace

int check_offered(Session& session, uint32_t pool, const dibs_claim_options& options) {
    if (options.offer == nullptr) return DIBS_OK;
    dibs_pool_limits limits = {};
    limits.size = sizeof limits;
    const int code = dibs_describe(static_cast<dibs_session*>(&session), pool, &limits);
    if (code != DIBS_OK) return code;
    const char* offered = options.offer->pool;
    return strncmp(offered, limits.name, sizeof limits.name) == 0 ? DIBS_OK : DIBS_EARGUMENT;
}

// Leases that have ended: those whose event was taken or, if tags are short, all.
void Session::free_over_tags(bool unreaped) {
    for (uint32_t tag = 0; tag < sizes.tags && over != 0; ++tag) {
        if (tags[tag].state != TagState::kOver) continue;
        if (unreaped || tags[tag].event == 0) free_tag_row(tag);
    }
}

int Session::need_tag() {
    if (over != 0) free_over_tags(free_tag == kNone);
    settle();  // so that what it frees is free before the claim is read
    if (free_tag == kNone) unpark_one();
    if (free_tag != kNone) return DIBS_OK;
    return owed != 0 ? DIBS_EFULL : DIBS_ELIMIT;  // a line frees the tag of what is owed
}

int Session::submit_claim(uint32_t pool,
                          const dibs_claim_options& options,
                          uint64_t user_data,
                          uint32_t& tag) {
    int code = check_claim(options);
    if (code == DIBS_OK) code = check_offered(*this, pool, options);
    if (code != DIBS_OK) return code;
    if (options.offer == nullptr || options.least_count != 0) {
        return submit_checked_claim(pool, options, user_data, tag);
    }
    const OfferTexts texts(*options.offer);
    dibs_claim_options whole = options;
    whole.least = texts.least;
    whole.least_count = options.offer->count;
    return submit_checked_claim(pool, whole, user_data, tag);
}

int Session::submit_checked_claim(uint32_t pool,
                                  const dibs_claim_options& options,
                                  uint64_t user_data,
                                  uint32_t& tag) {
    int code = check_pool(*this, pool);
    uint32_t units = options.units == 0 ? 1 : options.units;
    if (code == DIBS_OK && options.also_count != 0) code = add_pools(*this, pool, options, units);
    if (code == DIBS_OK) code = need_credit();
    if (code == DIBS_OK) code = need_line();
    if (code == DIBS_OK) code = need_tag();
    if (code != DIBS_OK) return code;

    shm::Submission entry;
    const bool terms = brings_terms(options);
    if (terms || (options.option_count | options.label_count | options.body_size) != 0) {
        const ClaimContent content = {options.options,
                                      options.option_count,
                                      options.labels,
                                      options.label_count,
                                      options.body,
                                      options.body_size,
                                      terms ? &options : nullptr};
        const size_t size = encode_claim(content, nullptr);
        if (size > DIBS_PAYLOAD_MAX) return DIBS_EPAYLOAD;
        code = need_payload(size, entry.payload_offset);
        if (code != DIBS_OK) return code;
        encode_claim(content, up_payload + entry.payload_offset);
        entry.payload_size = static_cast<uint32_t>(size);
    }
    tag = take_claim_tag(pool, units, user_data);
    tags[tag].requeue = options.requeue != 0;
    tags[tag].by_word = options.keep == DIBS_KEEP_BY_WORD;
    // Visible with the line, whose sequence is a release.
    if (tags[tag].by_word) touch_words[tag].touches.store(0, std::memory_order_relaxed);
    uint8_t more = tags[tag].by_word ? shm::OpFlag::kByWord : uint8_t{0};
    if ((pool & DIBS_POOL_SET) != 0) more |= shm::OpFlag::kOfSet;
    entry.user_data = claim_name(tag, tags[tag]);
    shm::set_operation(entry,
                       Op::kClaim,
                       static_cast<uint8_t>(kBusyFlags[options.when_busy] | more),
                       static_cast<uint16_t>(pool),
                       static_cast<uint16_t>(options.units == 0 ? 1 : options.units),
                       static_cast<uint16_t>(tag));
    entry.id = options.timeout_ns == DIBS_FOREVER ? shm::kNever
                                                  : static_cast<uint64_t>(options.timeout_ns);
    entry.fence = static_cast<uint64_t>(options.interval_ns);
    std::memcpy(entry.key, options.key, sizeof entry.key);
    push(entry);
    return DIBS_OK;
}

// ---- other operations

int Session::submit(shm::Submission& entry, uint64_t user_data, Told told, uint32_t& index) {
    index = kNone;
    int code = told == Told::kResult ? need_credit() : DIBS_OK;
    if (code == DIBS_OK) code = need_line();
    if (code != DIBS_OK) return code;
    if (told == Told::kNobody) {
        entry.user_data = kDiscard;
        entry.flags |= shm::OpFlag::kQuiet;
    } else {
        index = free_answer;
        Answer& answer = answers[index];
        free_answer = answer.next_free;
        answer.user_data = user_data;
        answer.op = entry.op;
        answer.lease = {};
        answer.pending = true;
        answer.discarded = false;
        ++answers_open;
        entry.user_data = uint64_t{answer.use} << 32 | index;
    }
    push(entry);
    return DIBS_OK;
}

int Session::submit_adoption(uint64_t lease, uint64_t fence, uint32_t& index) {
    // Making room takes in what has come, which frees tags: only then is one taken.
    int code = need_credit();
    if (code == DIBS_OK) code = need_line();
    if (code == DIBS_OK) code = need_tag();
    if (code != DIBS_OK) return code;
    // Out of the free tags at once: submitting may take in more, which would free other tags before
    // it.
    const uint32_t tag = free_tag;
    free_tag = tags[tag].next_free;
    tags[tag].state = TagState::kAdopting;
    shm::Submission entry;
    entry.op = Op::kAdopt;
    entry.tag = static_cast<uint16_t>(tag);
    entry.id = lease;
    entry.fence = fence;
    touch_words[tag].touches.store(0, std::memory_order_relaxed);
    code = submit(entry, 0, Told::kResult, index);
    if (code != DIBS_OK) {
        if (tags[tag].state == TagState::kAdopting)
            free_tag_row(tag);  // else the session's end has
        return code;
    }
    answers[index].lease.tag = tag;
    room_is_owed(tag, false);  // its entry says the same
    tags[tag].adopted_as = entry.user_data;
    if (tags[tag].gave_up == entry.user_data) tags[tag].gave_up = 0;
    return DIBS_OK;
}

int Session::submit_answered(shm::Submission& entry,
                             const void* answer,
                             size_t answer_size,
                             uint64_t user_data,
                             Told told,
                             uint32_t& index) {
    if (answer_size > DIBS_PAYLOAD_MAX) return DIBS_EPAYLOAD;
    if (answer_size != 0 && answer == nullptr) return DIBS_EARGUMENT;
    // Checked here, because the refusal of an operation that completes quietly is not reported.
    const Offered* slot = offered(entry.id);
    if (slot != nullptr && answer_size > slot->answer_max) return DIBS_EPAYLOAD;
    return submit_with(
        entry, {static_cast<const char*>(answer), answer_size}, user_data, told, index);
}

}  // namespace dibs::client
