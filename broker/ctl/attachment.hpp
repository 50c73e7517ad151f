// broker/ctl/attachment.hpp -- a subcommand's session with the broker.
// An error is a Failure that says what went wrong, where, and what to do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/who.hpp"
#include "dibs/dibs.h"
#include "shm/descriptor.hpp"

namespace dibs::ctl {

struct PoolOperand {
    std::string name;
    uint32_t count = 1;
};
// "POOL" or "POOL:N", N from 1 to `most`. Failure (usage).
PoolOperand parse_pool_operand(const std::string& text, uint32_t most);

// The socket's path as libdibs finds it; `given` comes first.
std::string socket_path(const std::string& given);

// For how long a broker may say nothing, as libdibs has it.
inline constexpr int64_t kAnswerTimeoutNs = 5 * DIBS_SECOND;
// It is there, and says nothing for longer.
Failure silent(const std::string& path);
// Why a connection to the broker's socket failed, and what to do.
Failure unreachable(const std::string& path, int error);
// "user alice may not WHAT: [[policy]] in dibsd's configuration says so (KEYS)"
std::string against_policy(const std::string& what, const std::string& keys);
// "there is no KIND NAME", which word is meant perhaps, and those that exist.
std::string unknown(const std::string& kind,
                    const std::string& name,
                    const std::vector<std::string>& names);
// There is no pool of that name, nor a set; `names` and `sets` are those that exist.
Failure no_pool(const std::string& name,
                const std::vector<std::string>& names,
                const std::vector<std::string>& sets = {});
// The error for an account that is not configured: the configured ones, and the nearest name.
Failure no_account(const std::string& name, const std::vector<std::string>& known);

class Attachment {
  public:
    // `socket` empty: where libdibs looks. Failure.
    explicit Attachment(const std::string& socket, dibs_connect_options options = {});
    // For another process, which connects: `connect` returns a socket that it has connected. Asked
    // again where the broker goes before it has answered.
    Attachment(const std::string& socket,
               dibs_connect_options options,
               const std::function<shm::Descriptor()>& connect);
    ~Attachment();
    Attachment(const Attachment&) = delete;
    Attachment& operator=(const Attachment&) = delete;

    [[nodiscard]] dibs_session* session() const { return session_; }
    // Failure: names the pools that there are, or those of the set that it is.
    [[nodiscard]] uint32_t pool(const std::string& name) const;
    // Of a pool set, too. Failure: names the pools and sets that there are.
    [[nodiscard]] uint32_t pool_or_set(const std::string& name) const;
    [[nodiscard]] dibs_pool_limits describe(uint32_t pool) const;
    [[nodiscard]] std::vector<std::string> pools() const;
    // The accounts that are configured, by name.
    [[nodiscard]] std::vector<std::string> accounts() const;

  private:
    void attach(dibs_connect_options options, const std::function<shm::Descriptor()>& connect);

    [[nodiscard]] Failure no_such_pool(const std::string& name, bool takes_sets) const;

    std::string path_;
    dibs_session* session_ = nullptr;
};

// Options for a session that holds one lease.
dibs_connect_options small_session();

// The exit code that stands for a code of dibs/dibs.h.
int exit_code_of(int code);

}  // namespace dibs::ctl
