// broker/admission/peer.hpp -- identifies a connection's peer and obtains its pidfd.
//
// SO_PEERPIDFD gives a handle on the very process that connected (Linux 6.5); where it gives none,
// the process is gone. On older kernels the pid of the credentials must be turned into a handle
// without being reused in between: the start time is read when the caller is let in, and once more
// after pidfd_open, and the connection must still be up; if the pid's process has died meanwhile,
// one of the three shows it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shm/descriptor.hpp"

namespace dibs {

struct Credentials {
    uint32_t uid = 0;
    uint32_t gid = 0;
    uint32_t pid = 0;
    std::vector<uint32_t> groups = {};  // supplementary ones
    // Of the process that had the pid when the caller was let in, if it was read.
    uint64_t start_time = 0;
};

// The process on the other end, as the kernel says.
struct Peer : Credentials {
    shm::Descriptor pidfd = {};
    bool killable = false;  // by this broker, as far as could be seen when it connected
};

// Asks the kernel whether this process may be killed; it is not.
bool may_kill(int pidfd);
// Its process has ended.
bool is_dead(int pidfd);
// Whether this broker may kill processes of any user: it has the capability CAP_KILL.
bool may_kill_anybody();
// Real, effective and saved user id of the process, as they are now. Nothing if it has died, or is
// not in sight in /proc.
std::optional<std::array<uint32_t, 3>> uids_now(uint32_t pid, int pidfd);
// False, errno set, if it could not be. A process that is dead already counts as killed.
bool kill_process(int pidfd);

// Of the process that connected, as they were then. Nothing, and *why, if the kernel does not say.
std::optional<Credentials> peer_credentials(int socket, std::string* why);

// The user's alone.
std::optional<uint32_t> peer_uid(int socket);

// Neither end has hung up.
bool is_connected(int socket);

// Whether this kernel gives a handle on the process that connected.
bool gives_peer_pidfd();

// By that handle, or else by the pid and the start time of the credentials. Nothing, and *why, if
// the process cannot be held on to.
std::optional<Peer> identify_peer(int socket,
                                  const Credentials& credentials,
                                  bool by_peer_pidfd,
                                  std::string* why);

// In clock ticks since boot; 0 if there is no such process in sight.
uint64_t process_start_time(uint32_t pid);

}  // namespace dibs
