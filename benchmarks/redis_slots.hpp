// benchmarks/redis_slots.hpp -- slots as elements of a Redis list: BRPOP claims, LPUSH releases.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "benchmarks/placement.hpp"
#include "benchmarks/scratch_folder.hpp"
#include "benchmarks/slot_source.hpp"
#include "shm/descriptor.hpp"

namespace dibs::bench {

class RedisSlots final : public SlotSource {
  public:
    // Starts a server that keeps nothing on disk, on both CPUs, and returns when it answers.
    RedisSlots(uint32_t slots, const Placement& placement);
    ~RedisSlots() override;
    RedisSlots(const RedisSlots&) = delete;
    RedisSlots& operator=(const RedisSlots&) = delete;
    void attach(uint32_t worker) override;
    void claim() override;
    void release() override;
    [[nodiscard]] pid_t server() const override { return pid_; }

    [[nodiscard]] static std::string program();  // of $PATH; empty = there is none

  private:
    [[noreturn]] void become(const std::string& server, const Placement& placement) const;
    [[nodiscard]] bool connect_once();
    // Sends a command, and reads an answer of so many lines; throws if it is an error.
    void ask(std::string_view command, int lines);

    ScratchFolder folder_;
    std::string socket_path_;
    pid_t pid_ = -1;
    shm::Descriptor socket_;
};

}  // namespace dibs::bench
