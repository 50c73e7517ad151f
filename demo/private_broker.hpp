// demo/private_broker.hpp -- starts a private, unprivileged broker in a temporary folder.
// The folder holds its configuration and its socket.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "demo/child.hpp"
#include "demo/child_output.hpp"
#include "demo/ideal.hpp"

namespace dibs::ctl::demo {

// A folder that goes away with everything in it.
class TemporaryFolder {
  public:
    TemporaryFolder();  // throws std::system_error
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder();
    // Removes it now; whether nothing is left of it.
    bool remove();
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

struct BrokerSizes {
    PoolShape shape = PoolShape::kWorkers;
    uint32_t slots = 8;
    uint32_t sessions = 32;
    uint32_t claims = 1024;  // that may wait or hold at once
};

inline constexpr const char* kPoolName = "demo";

// The text of its configuration file.
std::string broker_configuration(const BrokerSizes& sizes, const std::string& socket);
// $DIBS_DIBSD, else dibsd beside this tool, or in the folder above, as a build has it.
std::string broker_program();
// This tool itself, for starting it again.
std::string own_program();

class PrivateBroker {
  public:
    // Starts it and waits until it says that it is ready; throws std::runtime_error with what it
    // said if it does not within ten seconds.
    PrivateBroker(const std::string& folder, const BrokerSizes& sizes);
    PrivateBroker(const PrivateBroker&) = delete;
    PrivateBroker& operator=(const PrivateBroker&) = delete;

    [[nodiscard]] const std::string& socket() const { return socket_; }
    [[nodiscard]] Child& process() { return *process_; }
    [[nodiscard]] ChildOutput& output() { return output_; }

  private:
    void await_ready();

    std::string socket_;
    ChildOutput output_{"dibsd: ready on "};
    std::unique_ptr<Child> process_;
};

}  // namespace dibs::ctl::demo
