// broker/turn/application/payload.hpp -- verifies and reads what a session says of an application.
//
// The bytes are the turn's own copy, and another process has written them: limits of depth and
// number keep the verifier short, whatever they are. schemas/application.fbs declares the tables.
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

namespace wire {
enum class AppWord : uint8_t;
struct ApplicationPayload;
}  // namespace wire

class ApplicationReader {
  public:
    static constexpr size_t kGroupsMax = 32;

    // False if the bytes are not an ApplicationPayload within its limits: then its fields mean
    // nothing. Views into the bytes and into the reader; valid as long as both.
    [[nodiscard]] bool read(std::span<const uint8_t> bytes);

    [[nodiscard]] wire::AppWord word() const { return word_; }
    // Who says it, when, and what for is the caller's to add. Of AppWord::add.
    [[nodiscard]] const core::AddApplication& added() const { return added_; }
    [[nodiscard]] core::TimeNs age_ns() const { return age_ns_; }
    // Of any other word.
    [[nodiscard]] const core::ApplicationEvent& event() const { return event_; }

    // Where the payload says none.
    void set_manager_timeout(core::TimeNs timeout_ns) { manager_timeout_ns_ = timeout_ns; }

  private:
    [[nodiscard]] bool read_groups(const wire::ApplicationPayload& payload);

    wire::AppWord word_{};  // add
    core::AddApplication added_;
    core::ApplicationEvent event_;
    core::TimeNs age_ns_ = 0;
    core::TimeNs manager_timeout_ns_ = core::AddApplication{}.manager_timeout_ns;
    std::array<core::GroupSpec, kGroupsMax> groups_;
    std::array<std::array<core::Amount, shm::kResourcesMax>, kGroupsMax> amounts_;
};

}  // namespace dibs
