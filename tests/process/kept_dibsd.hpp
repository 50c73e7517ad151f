// tests/process/kept_dibsd.hpp -- dibsd as it is called: a keeper and its broker, which a test can
// kill one by one.
//
// Both are found by what they were called with: the folder is this test's own. The test program
// becomes the reaper of what its children leave behind, so that a broker without a keeper does not
// outlive the test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "shm/descriptor.hpp"
#include "tests/process/dibsd.hpp"

namespace dibs::test {

class KeptDibsd {
  public:
    // Starts it with this configuration and waits for its ready line. $DIBS_STATE_DIR is the
    // folder. `environment`: "NAME=value"; `options`: of its command line.
    KeptDibsd(const Folder& folder,
              const std::string& config,
              const std::vector<std::string>& environment = {},
              const std::vector<std::string>& options = {});
    // The same, but its keeper asks to be traced by this thread and waits for it: called() is its
    // pid. The ready line is there after await_ready().
    struct Traced {};
    KeptDibsd(const Folder& folder, const std::string& config, Traced traced);
    ~KeptDibsd();
    KeptDibsd(const KeptDibsd&) = delete;
    KeptDibsd& operator=(const KeptDibsd&) = delete;

    [[nodiscard]] pid_t called() const { return called_; }
    void await_ready();
    [[nodiscard]] const std::string& ready_line() const { return ready_line_; }
    [[nodiscard]] const std::string& socket() const { return socket_; }
    [[nodiscard]] const std::string& config_file() const { return file_; }

    // The one that there is; waits until there is one, which is not `other`.
    [[nodiscard]] pid_t broker(pid_t other = -1) const {
        return find("--link", "dibsd-broker", other);
    }
    // One that may have heard nothing yet.
    [[nodiscard]] pid_t successor(pid_t other) const { return find("--link", "", other); }
    // The same of the one that waits until it is needed.
    [[nodiscard]] pid_t standby(pid_t other = -1) const {
        return find("--ahead", "dibsd-standby", other);
    }
    [[nodiscard]] pid_t keeper(pid_t other = -1) const;
    // Kills it and waits for its death, not for its successor.
    void kill_broker() const;
    void kill_keeper() const;
    // Of the keeper that was called: the exit code, or 128 + the signal.
    int wait();

  private:
    void start(const Folder& folder,
               const std::string& config,
               const std::vector<std::string>& environment,
               const std::vector<std::string>& options,
               bool traced);
    [[nodiscard]] std::vector<pid_t> all() const;
    [[nodiscard]] static bool somebody_starts();
    [[nodiscard]] pid_t find(const std::string& option, const std::string& name, pid_t other) const;

    std::string socket_;
    std::string file_;
    std::string ready_line_;
    shm::Descriptor ready_;
    pid_t called_ = -1;
};

// Of a process that lives.
shm::Descriptor pidfd_of(pid_t pid);
// For so long at most. False: it lives.
bool await_death(const shm::Descriptor& pidfd, int ms = -1);
// The process is not running any more. It may be anybody's child.
void kill_and_await(pid_t pid, int signal);

// Open descriptors of a process, SIZE_MAX if it is gone; and a copy of the one whose link begins
// with `name`.
size_t count_descriptors(pid_t pid);
shm::Descriptor open_descriptor(pid_t pid, const std::string& name);

}  // namespace dibs::test
