// broker/takeover/stored_descriptors.hpp -- what a service manager gives back: looked at, and in
// its places.
//
// Keeper and broker have died, and the manager passes on what it stored for them. Names say what is
// meant, the kernel what is there: a descriptor that is not what its name says, a session that
// lacks something or has it twice, and names of nobody's are put aside. Without the broker that
// served from it there is no STATE, because nobody could prove that it is dead.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "broker/takeover/descriptor_name.hpp"
#include "broker/takeover/keeper_socket.hpp"
#include "broker/takeover/lent_socket.hpp"
#include "shm/descriptor.hpp"

namespace dibs {

// Of a session that has been welcomed, by SessionDescriptor.
inline constexpr size_t kStoredOfSession = kKeptMax - 1;

struct StoredDescriptors {
    // Takes all of them.
    explicit StoredDescriptors(std::vector<PassedDescriptor> passed);

    shm::Descriptor state;  // invalid: there is nothing to go on from, and the rest is put aside
    shm::Descriptor board;
    shm::Descriptor listener;
    shm::Descriptor config;
    // Pidfds. A pid may have been several brokers': each is to be proved dead.
    std::map<DescriptorName, std::vector<shm::Descriptor>> brokers;
    std::map<DescriptorName, std::array<shm::Descriptor, kStoredOfSession>> sessions;
    // As the manager calls them; each once. What it holds under them is worth nothing.
    std::vector<std::string> aside;
    // Sessions are all there is. A service that stops in order leaves them, as they are too many to
    // be told of one by one.
    bool ended = false;

  private:
    using Group = std::vector<shm::Descriptor>;
    [[nodiscard]] bool place(const DescriptorName& name, Group& group);
    void put_all_aside();
};

}  // namespace dibs
