// broker/payload.cpp -- the two tables that clients send, verified before anything is believed.
// SPDX-License-Identifier: Apache-2.0
#include "broker/payload.hpp"

#include <cstring>

#include "schemas/claim_generated.h"

namespace dibs {

namespace {

constexpr uint32_t kDepthMax = 8;
constexpr uint32_t kTablesMax = 64;

template <typename Table>
const Table* verified(std::span<const uint8_t> bytes) {
    flatbuffers::Verifier verifier(bytes.data(), bytes.size(), kDepthMax, kTablesMax);
    if (!verifier.VerifyBuffer<Table>(nullptr)) return nullptr;
    return flatbuffers::GetRoot<Table>(bytes.data());
}

std::string_view view(const flatbuffers::String* text) {
    return text == nullptr ? std::string_view() : text->string_view();
}

using Text = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;
using Options = flatbuffers::Vector<flatbuffers::Offset<wire::Option>>;

bool valid_labels(const Text* labels) {
    if (labels == nullptr) return true;
    if (labels->size() > shm::kLabelsMax) return false;
    for (const flatbuffers::String* label : *labels) {
        if (label->size() == 0 || label->size() > shm::kNameMax) return false;
    }
    return true;
}

bool valid_options(const Options* options) {
    if (options == nullptr) return true;
    if (options->size() > shm::kOptionsMax) return false;
    for (const wire::Option* option : *options) {
        const std::string_view key = view(option->key());
        if (key.empty() || key.find('=') != std::string_view::npos ||
            key.find('\0') != std::string_view::npos ||
            view(option->value()).find('\0') != std::string_view::npos) {
            return false;
        }
    }
    return true;
}

}  // namespace

bool valid_claim_payload(std::span<const uint8_t> bytes) {
    if (bytes.empty()) return true;
    const auto* claim = verified<wire::ClaimPayload>(bytes);
    return claim != nullptr && valid_options(claim->options()) && valid_labels(claim->labels());
}

bool AnnouncementReader::read(std::span<const uint8_t> bytes, Announcement& out) {
    out = Announcement{};
    if (bytes.empty()) return true;
    const auto* announce = verified<wire::AnnouncePayload>(bytes);
    if (announce == nullptr || !valid_labels(announce->labels()) ||
        !valid_options(announce->attributes())) {
        return false;
    }
    out.name = view(announce->name());
    if (out.name.size() > shm::kNameMax) return false;
    if (announce->labels() != nullptr) {
        for (const flatbuffers::String* label : *announce->labels())
            out.label_array[out.label_count++] = label->string_view();
    }
    size_t used = 0;
    const auto append = [&](std::string_view text) {
        if (text.empty()) return true;
        if (text.size() > attributes_.size() - used) return false;
        std::memcpy(attributes_.data() + used, text.data(), text.size());
        used += text.size();
        return true;
    };
    if (announce->attributes() != nullptr) {
        for (const wire::Option* option : *announce->attributes()) {
            if (!append(view(option->key())) || !append("=") || !append(view(option->value())) ||
                !append(std::string_view("\0", 1))) {
                return false;
            }
        }
    }
    out.attributes = {attributes_.data(), used};
    return true;
}

}  // namespace dibs
