// benchmarks/session_client.hpp -- a session of libdibs, and what a measurement must know of it
// that dibs/dibs.h does not say.
//
// A release is quiet: nobody is told when the broker has done it. So that it is not counted into
// the next claim, pacing looks at the session's own words in DOWN: entries taken and committed, and
// whether the broker asks to be woken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dibs/dibs.h>

#include <cstdint>
#include <string>

namespace dibs::bench {

// 0, a count, or std::runtime_error with what went wrong.
int must(int code, const char* what);

enum class Pace {
    kPaced,       // the broker is done with the release, and polls
    kBackToBack,  // the next claim follows at once
    kAsleep,      // the broker is done with the release, and asleep
};

struct ClientSetup {
    std::string socket;
    int32_t spin_us = 0;  // as in dibs_connect_options
    uint32_t leases_max = 0;
    uint32_t completion_entries = 0;
    uint32_t down_payload = 0;
};

class SessionClient {
  public:
    explicit SessionClient(const ClientSetup& setup);
    ~SessionClient();
    SessionClient(const SessionClient&) = delete;
    SessionClient& operator=(const SessionClient&) = delete;
    SessionClient(SessionClient&& other) noexcept : session_(other.session_) {
        other.session_ = nullptr;
    }

    [[nodiscard]] dibs_session* get() const { return session_; }
    [[nodiscard]] uint32_t pool(const char* name) const;
    // `same_core`: of the broker and this process.
    void pace(Pace pace, bool same_core) const;
    // A claim and its release, as nanoseconds of the claim.
    double claim(uint32_t pool, const dibs_claim_options* options) const;

  private:
    dibs_session* session_ = nullptr;
};

}  // namespace dibs::bench
