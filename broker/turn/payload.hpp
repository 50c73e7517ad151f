// broker/turn/payload.hpp -- verifies and reads the claim and announcement tables of clients.
//
// The bytes are the turn's own copy. Limits of depth and number keep the verifier at a fraction of
// a microsecond, whatever the bytes are. schemas/claim.fbs declares the tables.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "broker/core/command.hpp"
#include "shm/layout.hpp"

namespace dibs {

// A ClaimPayload within its limits; no bytes at all are one, too.
[[nodiscard]] bool valid_claim_payload(std::span<const uint8_t> bytes);

// What is no "NAME=AMOUNT" has no name, which no resource has.
[[nodiscard]] core::Amount amount_of(std::string_view text);

// The broker's part of a claim's payload. Views into the bytes and into the reader; valid as long
// as both.
class ClaimReader {
  public:
    // False if the bytes are not a ClaimPayload within its limits: then its fields mean nothing.
    [[nodiscard]] bool read(std::span<const uint8_t> bytes);

    [[nodiscard]] const core::ClaimTerms& terms() const { return terms_; }
    [[nodiscard]] int32_t priority() const { return priority_; }
    // A part of one slot.
    [[nodiscard]] std::span<const core::Amount> least() const { return {least_.data(), leasts_}; }
    [[nodiscard]] std::span<const core::Amount> most() const { return {most_.data(), mosts_}; }
    [[nodiscard]] uint32_t offer() const { return offer_; }
    [[nodiscard]] std::string_view meta() const { return meta_; }
    // Further pools.
    [[nodiscard]] std::span<const core::PoolUnits> also() const { return {also_.data(), alsos_}; }
    // Of which application's task it is; null: of none.
    [[nodiscard]] const core::MemberOf* member() const { return is_member_ ? &member_ : nullptr; }
    // False: the terms say nothing of preemption, and the pool decides.
    [[nodiscard]] bool says_preempt() const { return says_preempt_; }
    // A bit for each preferred label, in the payload's order, that `labels` (each ended by a zero
    // byte) do not have.
    [[nodiscard]] uint32_t lacking(std::string_view labels) const;

  private:
    core::ClaimTerms terms_;
    bool says_preempt_ = false;
    int32_t priority_ = 1;
    std::array<std::string_view, shm::kLabelsMax> labels_;
    std::array<std::string_view, shm::kLabelsMax> preferred_;
    std::array<core::Amount, shm::kResourcesMax> least_;
    std::array<core::Amount, shm::kResourcesMax> most_;
    size_t leasts_ = 0;
    size_t mosts_ = 0;
    uint32_t offer_ = 0;
    std::string_view meta_;
    std::array<core::PoolUnits, shm::kGrantPartsMax - 1> also_;
    size_t alsos_ = 0;
    core::MemberOf member_;
    bool is_member_ = false;
};

// A worker's announcement of a slot. Views into the bytes, and into the reader's own attributes.
struct Announcement {
    std::string_view name;
    std::array<std::string_view, shm::kLabelsMax> label_array;
    uint32_t label_count = 0;
    std::string_view attributes;  // "key=value", each ended by a zero byte
    std::array<core::Amount, shm::kResourcesMax> resource_array;
    size_t resource_count = 0;
    uint32_t parts = 0;

    [[nodiscard]] std::span<const core::Amount> resources() const {
        return {resource_array.data(), resource_count};
    }
    [[nodiscard]] std::span<const std::string_view> labels() const {
        return {label_array.data(), label_count};
    }
};

class AnnouncementReader {
  public:
    // False if the bytes are not an AnnouncePayload within its limits. `out` is good until the
    // next read.
    [[nodiscard]] bool read(std::span<const uint8_t> bytes, Announcement& out);

  private:
    std::array<char, shm::kPayloadMax> attributes_;
};

}  // namespace dibs
