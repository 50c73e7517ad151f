// broker/ctl/admin/name.hpp -- how people name things: a pool by its name, a slot as POOL/NUMBER, a
// claim and later its lease by the claim's number, either also by its id, a client as sROW.LIFE.
//
// A claim's number is its place in the order of arrival, is never used again, and stays when the
// claim becomes a lease: so one number follows a request from the backlog to its end. An id is
// written 0x100000000; programs that have it as an integer may write it in decimal, since a number
// as large is some life of the machine away.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "broker/ctl/admin/admin_client.hpp"

namespace dibs::ctl {

struct Name {
    enum class Kind : uint8_t { kPool, kSlot, kNumber, kId, kClient };
    Kind kind = Kind::kPool;
    std::string pool;     // kPool, kSlot; kClient: the text
    uint64_t number = 0;  // kSlot, kNumber, kId
};

// Failure (usage): it can be none of them.
Name parse_name(const std::string& text);

// The claim or lease of that name; Failure (not found).
std::unique_ptr<admin::ClaimT> find_claim(AdminClient& client, const Name& name);
std::unique_ptr<admin::LeaseT> find_lease(AdminClient& client, const Name& name);
// Nothing if there is none.
std::unique_ptr<admin::ClaimT> look_for_claim(AdminClient& client, const Name& name);
std::unique_ptr<admin::LeaseT> look_for_lease(AdminClient& client, const Name& name);

}  // namespace dibs::ctl
