// clientlib/order.hpp -- writes and reads the text of an order: its id and its token, in hex.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace dibs::client {

struct Order {
    uint64_t id = 0;
    std::array<uint64_t, 2> token = {};
};

inline constexpr size_t kOrderText = 49;  // bytes, without the end

// Of the last DIBS_CREATE: its text, and, allocated, what its worker is to have.
struct LastOrder {
    char text[kOrderText + 1] = {};
    char* sizes = nullptr;
};

struct Session;
// As the last of the session's assignments an order has come: keeps what its worker is to have.
void keep_sizes(Session& session);

inline void write_order(const Order& order, char (&text)[kOrderText + 1]) {
    const auto wide = [](uint64_t word) { return static_cast<unsigned long long>(word); };
    std::snprintf(text,
                  sizeof text,
                  "%016llx-%016llx%016llx",
                  wide(order.id),
                  wide(order.token[0]),
                  wide(order.token[1]));
}

// False: it is none.
inline bool read_order(const char* text, Order* order) {
    std::array<uint64_t, 3> words = {};
    constexpr size_t kDash = 16;
    for (size_t at = 0; at < kOrderText; ++at) {
        const char c = text[at];
        if (at == kDash) {
            if (c != '-') return false;
            continue;
        }
        const bool letter = c >= 'a' && c <= 'f';
        if (!letter && (c < '0' || c > '9')) return false;
        const size_t digit = at < kDash ? at : at - 1;
        uint64_t& word = words[digit / 16];
        word = word << 4U | static_cast<uint64_t>(letter ? c - 'a' + 10 : c - '0');
    }
    if (text[kOrderText] != 0) return false;
    *order = {words[0], {words[1], words[2]}};
    return true;
}

}  // namespace dibs::client
