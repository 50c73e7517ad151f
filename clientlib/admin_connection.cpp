// clientlib/admin_connection.cpp -- greets the broker for an admin conversation and maps its codes.
// SPDX-License-Identifier: Apache-2.0
#include "clientlib/admin_connection.hpp"

#include <stdio.h>

#include "shm/handshake.hpp"

namespace dibs::client {

int greet(const AdminConnection& connection) {
    shm::AdminHello hello;
    snprintf(hello.version,
             sizeof hello.version,
             "%d.%d.%d",
             DIBS_VERSION_MAJOR,
             DIBS_VERSION_MINOR,
             DIBS_VERSION_PATCH);
    union {
        uint64_t magic;
        shm::AdminWelcome welcome;
        shm::Farewell farewell;
    } reply = {};
    const int size = connection.ask(&hello, sizeof hello, &reply, sizeof reply);
    if (size < 0) return size;
    if (size == sizeof reply.welcome && reply.magic == shm::kAdminWelcomeMagic) {
        return reply.welcome.admin_version == shm::kAdminVersion ? DIBS_OK : DIBS_EVERSION;
    }
    if (size != sizeof reply.farewell || reply.magic != shm::kFarewellMagic) {
        return DIBS_EHANDSHAKE;
    }
    return code_of_farewell(reply.farewell.code);
}

int code_of_farewell(shm::FarewellCode code) {
    switch (code) {
        case shm::FarewellCode::kVersion:
            return DIBS_EVERSION;
        case shm::FarewellCode::kNotAllowed:
            return DIBS_ENOTALLOWED;
        case shm::FarewellCode::kLimit:
        case shm::FarewellCode::kFull:  // there is room when one of those that are in has gone
            return DIBS_ELIMIT;
        case shm::FarewellCode::kDraining:
            return DIBS_EDRAINING;
        default:
            return DIBS_EHANDSHAKE;
    }
}

int open_conversation(const AdminConnection& connection,
                      const dibs_connect_options* given,
                      dibs_connect_options* known) {
    int code = read_options(given, known, sizeof *known, kFirstConnectOptions);
    if (code != DIBS_OK) return code;
    sockaddr_un address = {};
    code = broker_address(*known, &address);
    if (code == DIBS_OK) code = connection.reach(address);
    if (code == DIBS_OK) code = greet(connection);
    if (code == DIBS_OK) return code;
    const int error = errno;
    tell_failure(*known,
                 address,
                 code,
                 dibs_strerror(code),
                 code == DIBS_ESYSTEM ? strerror(error) : nullptr);
    errno = error;
    return code;
}

int code_of_answer(uint8_t code) {
    constexpr int kCodes[] = {
        DIBS_OK,
        DIBS_EHANDSHAKE,     // malformed
        DIBS_EPOOL,          // unknown_pool
        DIBS_ENOTFOUND,      // not_found
        DIBS_ALREADY_ENDED,  // already_ended
        DIBS_ENOTALLOWED,    // denied
        DIBS_EVERSION,       // unsupported
        DIBS_ESTATE,         // refused
        DIBS_ENOTFOUND,      // unknown_account
    };
    return code < sizeof kCodes / sizeof *kCodes ? kCodes[code] : DIBS_EHANDSHAKE;
}

}  // namespace dibs::client
