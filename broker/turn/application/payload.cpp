// broker/turn/application/payload.cpp -- verifies and reads what a session says of an application.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/application/payload.hpp"

#include <algorithm>

#include "broker/turn/payload.hpp"
#include "schemas/application_generated.h"

namespace dibs {

namespace {

constexpr uint32_t kAppDepthMax = 8;
constexpr uint32_t kAppTablesMax = 64;

std::string_view text_in(const flatbuffers::String* text) {
    return text == nullptr ? std::string_view() : text->string_view();
}

// Names are listed line by line; an empty one is the core's to refuse.
bool is_line(const flatbuffers::String* text, size_t most) {
    const std::string_view letters = text_in(text);
    return letters.size() <= most && std::none_of(letters.begin(), letters.end(), [](char letter) {
               return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
           });
}

// The words behind `adopt` stand in the order of the core's.
core::ApplicationEvent::Kind kind_of(wire::AppWord word) {
    return static_cast<core::ApplicationEvent::Kind>(static_cast<uint8_t>(word) - 1);
}
static_assert(static_cast<uint8_t>(wire::AppWord::complete_task) - 1 ==
              static_cast<uint8_t>(core::ApplicationEvent::Kind::kCompleteTask));

}  // namespace

bool ApplicationReader::read_groups(const wire::ApplicationPayload& payload) {
    added_.groups = {};
    if (payload.groups() == nullptr) return true;
    if (payload.groups()->size() > kGroupsMax) return false;
    size_t count = 0;
    for (const wire::AppGroup* group : *payload.groups()) {
        if (!is_line(group->name(), shm::kNameMax)) return false;
        size_t resources = 0;
        if (group->resource() != nullptr) {
            if (group->resource()->size() > shm::kResourcesMax) return false;
            for (const flatbuffers::String* text : *group->resource())
                amounts_[count][resources++] = amount_of(text->string_view());
        }
        groups_[count] = {.name = text_in(group->name()),
                          .members = group->members(),
                          .resource = {amounts_[count].data(), resources}};
        ++count;
    }
    added_.groups = {groups_.data(), count};
    return true;
}

bool ApplicationReader::read(std::span<const uint8_t> bytes) {
    flatbuffers::Verifier verifier(bytes.data(), bytes.size(), kAppDepthMax, kAppTablesMax);
    if (bytes.empty() || !verifier.VerifyBuffer<wire::ApplicationPayload>(nullptr)) return false;
    const auto* payload = flatbuffers::GetRoot<wire::ApplicationPayload>(bytes.data());
    if (payload->word() > wire::AppWord::MAX || payload->style() > wire::AppStyle::MAX ||
        payload->priority() < 0 || !is_line(payload->application(), shm::kNameMax) ||
        !is_line(payload->task(), shm::kNameMax) || !is_line(payload->group(), shm::kNameMax) ||
        !is_line(payload->parameters(), shm::kMetaMax) ||
        !is_line(payload->tags(), shm::kMetaMax) || !read_groups(*payload)) {
        return false;
    }
    word_ = payload->word();
    if (word_ == wire::AppWord::add) {
        added_.application = text_in(payload->application());
        added_.priority = payload->priority();
        added_.placeholder_timeout_ns = payload->placeholder_timeout_ns();
        added_.style = static_cast<shm::GangStyle>(payload->style());
        added_.parameters = text_in(payload->parameters());
        added_.tags = text_in(payload->tags());
        const core::TimeNs told_ns = payload->manager_timeout_ns();
        added_.manager_timeout_ns = told_ns == 0 ? manager_timeout_ns_ : told_ns;
        added_.recover = payload->recover();
        age_ns_ = payload->age_ns();
        return true;
    }
    event_.kind = kind_of(word_);
    event_.application = text_in(payload->application());
    event_.task = text_in(payload->task());
    event_.group = text_in(payload->group());
    event_.priority = payload->priority();
    event_.assigned = payload->assigned();
    return true;
}

}  // namespace dibs
