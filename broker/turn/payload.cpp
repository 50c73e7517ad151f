// broker/turn/payload.cpp -- verifies and reads the claim and announcement tables of clients.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/payload.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "broker/config/quantity.hpp"
#include "schemas/claim_generated.h"

namespace dibs {

namespace {

constexpr uint32_t kDepthMax = 8;
constexpr uint32_t kTablesMax = 64;
constexpr auto kLongestGrace = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

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
        const std::string_view text = label->string_view();
        if (text.empty() || text.size() > shm::kNameMax) return false;
        if (text.find('\0') != std::string_view::npos) return false;
    }
    return true;
}

bool has_control(std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](char letter) {
        return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
    });
}

bool valid_account(const flatbuffers::String* account) {
    if (account == nullptr) return true;
    const std::string_view name = account->string_view();
    return !name.empty() && name.size() <= shm::kNameMax && !has_control(name);
}

bool valid_meta(const flatbuffers::String* meta) {
    return view(meta).size() <= shm::kMetaMax && !has_control(view(meta));
}

// An empty one is the core's to refuse.
bool valid_member_name(const flatbuffers::String* name) {
    return view(name).size() <= shm::kNameMax && !has_control(view(name));
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

core::Amount amount_of(std::string_view text) {
    const size_t equals = std::min(text.find('='), text.size());
    const auto amount = parse_size(text.substr(std::min(equals + 1, text.size())));
    if (!amount || *amount > shm::kAmountMax) return {};
    return {text.substr(0, equals), static_cast<int64_t>(*amount)};
}

namespace {

// How many; false: too many.
bool read_amounts(const Text* texts,
                  std::array<core::Amount, shm::kResourcesMax>& amounts,
                  size_t* count) {
    *count = 0;
    if (texts == nullptr) return true;
    if (texts->size() > amounts.size()) return false;
    for (const flatbuffers::String* text : *texts)
        amounts[(*count)++] = amount_of(text->string_view());
    return true;
}

}  // namespace

bool valid_claim_payload(std::span<const uint8_t> bytes) {
    return ClaimReader().read(bytes);
}

bool ClaimReader::read(std::span<const uint8_t> bytes) {
    terms_ = {};
    says_preempt_ = false;
    priority_ = 1;
    leasts_ = mosts_ = 0;
    offer_ = 0;
    meta_ = {};
    alsos_ = 0;
    is_member_ = false;
    if (bytes.empty()) return true;
    const auto* claim = verified<wire::ClaimPayload>(bytes);
    if (claim == nullptr || !valid_options(claim->options()) || !valid_labels(claim->labels()) ||
        !valid_labels(claim->preferred()) || claim->preempt() > wire::Preempt::never ||
        claim->preempt_grace_ns() > kLongestGrace || claim->priority() < 1 ||
        !valid_account(claim->account()) || !valid_meta(claim->meta()) ||
        !valid_member_name(claim->application()) || !valid_member_name(claim->task()) ||
        !valid_member_name(claim->group()) || !read_amounts(claim->least(), least_, &leasts_) ||
        !read_amounts(claim->most(), most_, &mosts_)) {
        return false;
    }
    if (claim->also() != nullptr) {
        if (claim->also()->size() > also_.size()) return false;
        for (const wire::PoolUnits* further : *claim->also())
            also_[alsos_++] = {further->pool(), further->units()};
    }
    const auto list = [](const Text* text, auto& to) {
        size_t count = 0;
        if (text != nullptr) {
            for (const flatbuffers::String* label : *text)
                to[count++] = label->string_view();
        }
        return std::span<const std::string_view>(to.data(), count);
    };
    terms_.labels = list(claim->labels(), labels_);
    terms_.provisionable = list(claim->preferred(), preferred_);
    says_preempt_ = claim->preempt() != wire::Preempt::as_pool;
    if (says_preempt_) {
        terms_.preempt_mode =
            static_cast<shm::PreemptMode>(static_cast<uint8_t>(claim->preempt()) - 1);
        terms_.preempt_grace_ns = claim->preempt_grace_ns();
    }
    terms_.requeue = claim->requeue();
    terms_.account = view(claim->account());
    priority_ = claim->priority();
    offer_ = claim->offer();
    meta_ = view(claim->meta());
    is_member_ = claim->application() != nullptr || claim->task() != nullptr;
    member_ = {.application = view(claim->application()),
               .task = view(claim->task()),
               .group = view(claim->group()),
               .priority = priority_};
    return true;
}

uint32_t ClaimReader::lacking(std::string_view labels) const {
    uint32_t bits = 0;
    for (size_t i = 0; i < terms_.provisionable.size(); ++i) {
        bool there = false;
        for (size_t at = 0; at < labels.size() && !there;) {
            const size_t end = std::min(labels.find('\0', at), labels.size());
            there = labels.substr(at, end - at) == terms_.provisionable[i];
            at = end + 1;
        }
        if (!there) bits |= 1U << i;
    }
    return bits;
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
    if (!read_amounts(announce->resources(), out.resource_array, &out.resource_count)) return false;
    out.parts = announce->parts();
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
