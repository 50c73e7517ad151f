// broker/admin/packet.cpp -- verifies a tool's request.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/packet.hpp"

#include <flatbuffers/flatbuffers.h>

#include "broker/turn/application/payload.hpp"
#include "schemas/admin_generated.h"

namespace dibs {

namespace {

constexpr uint32_t kDepthMax = 4;
// The request, and one for each group of an application; fewer workers pull at once.
constexpr uint32_t kTablesMax = 1 + ApplicationReader::kGroupsMax;

size_t bytes_of(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* texts) {
    size_t bytes = 0;
    for (flatbuffers::uoffset_t at = 0; texts != nullptr && at < texts->size(); ++at)
        bytes += sizeof(flatbuffers::uoffset_t) + texts->Get(at)->size();
    return bytes;
}

// What its lists unpack to. Offsets may be shared: a small packet may stand for a large request.
size_t unpacked_bytes(const admin::Request& asked) {
    size_t bytes = bytes_of(asked.labels()) + bytes_of(asked.prefer()) + bytes_of(asked.least()) +
                   bytes_of(asked.most()) + bytes_of(asked.names());
    if (asked.app_groups() != nullptr)
        for (const auto* group : *asked.app_groups())
            bytes += bytes_of(group->resource());
    if (asked.pullers() != nullptr)
        for (const auto* puller : *asked.pullers())
            bytes += bytes_of(puller->labels());
    return bytes;
}

}  // namespace

bool verified(std::span<const uint8_t> packet) {
    flatbuffers::Verifier verifier(packet.data(), packet.size(), kDepthMax, kTablesMax);
    return verifier.VerifyBuffer<admin::Request>(nullptr) &&
           unpacked_bytes(*flatbuffers::GetRoot<admin::Request>(packet.data())) <= packet.size();
}

}  // namespace dibs
