// demo/client_session.cpp -- submits rows as the claims of one session.
// SPDX-License-Identifier: Apache-2.0
#include "demo/client_session.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <stdexcept>

namespace dibs::ctl::demo {

namespace {

constexpr uint32_t kPayloadAreaMin = 65'536;
constexpr uint32_t kPayloadAreaMax = 4U << 20;
constexpr uint32_t kClaimBytes = 128;  // a claim's payload with its option, at most
constexpr size_t kBatch = 64;

uint32_t area_for(uint64_t bytes) {
    const uint64_t needed = std::clamp<uint64_t>(bytes, kPayloadAreaMin, kPayloadAreaMax);
    return static_cast<uint32_t>(std::bit_ceil(needed));
}

dibs_connect_options options_for(const SessionSizes& sizes) {
    dibs_connect_options options{};
    options.size = sizeof options;
    options.leases_max = std::clamp(std::bit_ceil(sizes.claims), 64U, 1024U);
    // Room for every claim's outcome and every lease's end beside the operations under way.
    options.submission_entries = 256;
    options.completion_entries = 4096;
    options.up_payload = area_for(uint64_t{256} * kClaimBytes);
    const uint64_t grant = 64 + uint64_t{sizes.units_max} * sizes.slot_bytes + 63;
    options.down_payload = area_for(options.leases_max * grant);
    return options;
}

// Codes that mean: not now.
bool is_limit(int code) {
    return code == DIBS_EFULL || code == DIBS_ELIMIT || code == DIBS_EUNREAD;
}

}  // namespace

std::string call_failure(const std::string& call, int code) {
    return call + ": " + dibs_strerror(code) + " (" + dibs_reason_name(code) + ")";
}

ClientSession::ClientSession(const std::string& socket,
                             const std::string& pool,
                             const SessionSizes& sizes)
    : tells_hold_(sizes.tells_hold) {
    std::array<char, 256> text{};
    dibs_connect_options options = options_for(sizes);
    options.socket_path = socket.c_str();
    options.timeout_ns = 60 * DIBS_SECOND;
    options.error_text = text.data();
    options.error_text_size = text.size();
    int code = dibs_connect(&options, &session_);
    if (code < 0) {
        throw std::runtime_error(call_failure("connecting to the broker", code) + " " +
                                 text.data());
    }
    code = dibs_pool(session_, pool.c_str(), &pool_);
    if (code == 0) return;
    dibs_close(session_);
    throw std::runtime_error(call_failure("looking up pool " + pool, code));
}

ClientSession::~ClientSession() {
    dibs_close(session_);
}

int ClientSession::submit(const std::vector<TraceRow>& rows) {
    std::array<dibs_op, kBatch> ops{};
    std::array<dibs_claim_options, kBatch> claims{};
    std::array<dibs_option, kBatch> options{};
    std::array<std::string, kBatch> holds;
    const size_t count = std::min(kBatch, waiting_.size());
    if (count == 0) return 0;
    for (size_t i = 0; i < count; ++i) {
        const TraceRow& row = rows[waiting_[i]];
        holds[i] = std::to_string(row.hold_ns);
        options[i] = {"hold_ns", holds[i].c_str()};
        claims[i].size = sizeof claims[i];
        claims[i].timeout_ns = DIBS_FOREVER;
        claims[i].units = row.units;
        claims[i].options = tells_hold_ ? &options[i] : nullptr;
        claims[i].option_count = tells_hold_ ? 1 : 0;
        ops[i].size = sizeof ops[i];
        ops[i].kind = DIBS_OP_CLAIM;
        ops[i].user_data = waiting_[i];
        ops[i].pool = pool_;
        ops[i].claim = &claims[i];
    }
    const int accepted = dibs_submit(session_, ops.data(), count);
    if (accepted < 0) return is_limit(accepted) ? 0 : accepted;
    waiting_.erase(waiting_.begin(), waiting_.begin() + accepted);
    return accepted;
}

bool ClientSession::release(size_t row, const dibs_lease& lease) {
    dibs_op op{};
    op.size = sizeof op;
    op.kind = DIBS_OP_RELEASE;
    op.user_data = row;
    op.lease = &lease;
    return dibs_submit(session_, &op, 1) == 1;
}

int ClientSession::reap(std::vector<dibs_completion>* completions) {
    completions->resize(kBatch);
    const int count = dibs_reap(session_, completions->data(), kBatch, DIBS_NOWAIT);
    completions->resize(static_cast<size_t>(std::max(count, 0)));
    return count;
}

bool ClientSession::arm() {
    return dibs_arm(session_) == DIBS_OK;
}

void ClientSession::dispatch() {
    dibs_dispatch(session_);
}

}  // namespace dibs::ctl::demo
