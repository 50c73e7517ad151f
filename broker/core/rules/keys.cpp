// broker/core/rules/keys.cpp -- finds a claim or lease by its idempotency key, (uid, key).
//
// A key is known while its claim waits or its lease lives. The index holds claim rows, and lease
// rows behind them.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "broker/core/parts.hpp"

namespace dibs::core {

namespace {

uint64_t key_hash(uint64_t seed, uint32_t uid, const uint8_t* key) {
    return hash_bytes(key, sizeof(Key), seed ^ (uint64_t{uid} << 32U));
}

}  // namespace

uint32_t Claims::find_key(uint32_t session, const Key& key) const {
    if (!key_given(key.data())) return kNoRow;
    const uint32_t uid = state.sessions[session].uid;
    const uint32_t claims = state.claims.size();
    const uint32_t found = keys.find(key_hash(hash_seed(), uid, key.data()), [&](uint32_t place) {
        const bool leased = place >= claims;
        const uint32_t row = leased ? place - claims : place;
        const uint8_t* own = leased ? state.leases[row].key : state.claims[row].key;
        const uint32_t owner = leased ? state.leases[row].session : state.claims[row].session;
        return std::memcmp(own, key.data(), sizeof(Key)) == 0 && state.sessions[owner].uid == uid;
    });
    assert(found == kNoRow || found < claims + state.leases.size());
    return found == kNoRow || found < claims ? found : (found - claims) | kTagLease;
}

uint32_t Claims::key_place(uint32_t holder) const {
    assert((holder & kTagFresh) == 0);
    return (holder & kTagLease) != 0 ? state.claims.size() + (holder & ~kTagLease) : holder;
}

void Claims::add_key(uint32_t session, const uint8_t* key, uint32_t holder) {
    if (!key_given(key)) return;
    keys.insert(key_hash(hash_seed(), state.sessions[session].uid, key), key_place(holder));
}

void Claims::remove_key(uint32_t session, const uint8_t* key, uint32_t holder) {
    if (!key_given(key)) return;
    keys.remove(key_hash(hash_seed(), state.sessions[session].uid, key), key_place(holder));
}

}  // namespace dibs::core
