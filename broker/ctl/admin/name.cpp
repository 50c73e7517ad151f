// broker/ctl/admin/name.cpp -- parses names and finds what they stand for.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/name.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

constexpr uint64_t kIdsFrom = uint64_t{1} << 32U;  // generations begin at 1

struct Numeral {
    uint64_t value = 0;
    bool is_id = false;  // written as 0x..., or as large as ids are and numbers are not
};

std::optional<uint64_t> number_of(std::string_view text, int base) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::optional<Numeral> numeral_of(std::string_view text) {
    if (text.starts_with("0x")) {
        const auto id = number_of(text.substr(2), 16);
        return id ? std::optional<Numeral>({*id, true}) : std::nullopt;
    }
    const auto number = number_of(text, 10);
    return number ? std::optional<Numeral>({*number, *number >= kIdsFrom}) : std::nullopt;
}

bool is_client(std::string_view text) {
    const size_t dot = text.find('.');
    return text.size() > 1 && text[0] == 's' && dot != std::string_view::npos &&
           number_of(text.substr(1, dot - 1), 10) && number_of(text.substr(dot + 1), 10);
}

std::string quoted(const std::string& text) {
    return "\"" + text + "\"";
}

// What a numeral without its letter may be.
std::string readings(const std::string& text, bool is_id) {
    const std::string end =
        is_id ? ", the lease l" + text + " or the slot s" + text : " or the lease l" + text;
    return quoted(text) + " may be the claim c" + text + end;
}

std::optional<Name> lettered(const std::string& text) {
    if (text.empty()) return std::nullopt;
    const auto numeral = numeral_of(std::string_view(text).substr(1));
    if (!numeral) return std::nullopt;
    const auto [value, is_id] = *numeral;
    if (text[0] == static_cast<char>(Letter::kClaim))
        return Name{Name::Kind::kClaim, {}, value, is_id};
    if (text[0] == static_cast<char>(Letter::kLease))
        return Name{Name::Kind::kLease, {}, value, is_id};
    const bool slot = text[0] == static_cast<char>(Letter::kSlot) && is_id;
    return slot ? std::optional<Name>({Name::Kind::kSlotId, {}, value, true}) : std::nullopt;
}

// A letter and a number have another reading: of the other kind, or none.
Name of_kind(const std::string& text, const std::string& word, Name::Kind kind) {
    const bool claim = kind == Name::Kind::kClaim;
    const std::string wanted = claim ? "a claim" : "a lease";
    const std::string start = "dibs " + word + " takes " + wanted;
    if (const auto bare = numeral_of(text)) {
        throw Failure(kExitUsage,
                      readings(text, bare->is_id) + ": " + start + ", so write " +
                          (claim ? "c" : "l") + text);
    }
    Name name = parse_name(text);
    if (name.kind == kind) return name;
    const std::string numeral = text.substr(text.find('/') + 2);  // without a slash: behind 1
    if (name.kind == Name::Kind::kClaim) {
        throw Failure(kExitUsage,
                      quoted(text) + " is a claim, and " + start +
                          (name.by_id ? "; dibs ls leases shows them"
                                      : ", such as l" + numeral +
                                            ", that claim's once it is "
                                            "granted"));
    }
    if (name.kind == Name::Kind::kLease) {
        throw Failure(kExitUsage,
                      quoted(text) + " is a lease, and " + start +
                          (name.by_id ? "; dibs ls claims shows them"
                                      : ", such as c" + numeral + ", whose lease it is"));
    }
    if (name.kind == Name::Kind::kSlot || name.kind == Name::Kind::kSlotId) {
        throw Failure(kExitUsage,
                      quoted(text) + " is a slot, and " + start +
                          "; dibs ls slots and dibs ls leases tell who has it");
    }
    throw Failure(kExitUsage,
                  quoted(text) + " is no " + (claim ? "claim, such as c12" : "lease, such as l12") +
                      "; dibs ls " + (claim ? "claims" : "leases") + " shows them");
}

// The one of the rows that has the number or id.
template <class Rows>
typename Rows::value_type pick(Rows rows, const Name& name) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) {
        return row->full && (name.by_id ? row->id : row->number) == name.number;
    });
    return found == rows.end() ? nullptr : std::move(*found);
}

// 0 would be all of them.
bool is_one(const Name& name) {
    return name.by_id || name.number != 0;
}

std::unique_ptr<admin::ClaimT> look_for_claim(AdminClient& client, const Name& name) {
    if (!is_one(name)) return nullptr;
    return pick(client.claims(name.pool, name.by_id ? 0 : name.number), name);
}

std::unique_ptr<admin::LeaseT> look_for_lease(AdminClient& client, const Name& name) {
    if (!is_one(name)) return nullptr;
    return pick(client.leases(name.pool, name.by_id ? 0 : name.number), name);
}

// What can be told of a claim that neither waits nor has its lease. Numbers are given in the order
// of arrival and never again, so one that has been given is of a claim that has ended, or of one
// that the asker may not see.
std::string gone(AdminClient& client, const Name& name) {
    const std::string where = "; dibs ls claims shows those that wait";
    admin::RequestT request;
    request.ask = admin::Ask::status;
    const admin::AnswerT answer = client.must(request, "");
    const bool admin = answer.status != nullptr && answer.status->is_admin;
    const uint64_t next = answer.status == nullptr ? 0 : answer.status->next_number;
    const std::string claim = "claim " + shown(name);
    if (!name.pool.empty()) {
        return claim + " does not wait in that pool: it has ended" +
               (admin ? "" : ", is another user's") + ", or is of another pool" + where;
    }
    if (next == 0 || name.by_id) {
        return claim + " does not wait: it has ended" + (admin ? "" : ", is another user's,") +
               " or never was" + where;
    }
    if (name.number == 0 || name.number >= next) {
        const std::string last =
            next == 1 ? "none has come yet"
                      : "the last one that came is " + number_text(Letter::kClaim, next - 1);
        return "there is no " + claim + ": " + last + where;
    }
    const std::string lease = number_text(Letter::kLease, name.number);
    if (admin) {
        return claim + " has ended: it does not wait, and there is no lease " + lease + where;
    }
    return claim + " has ended, or is another user's: it does not wait, and you hold no lease " +
           lease + where;
}

}  // namespace

std::string shown(const Name& name) {
    Letter letter = Letter::kSlot;
    if (name.kind == Name::Kind::kClaim) letter = Letter::kClaim;
    if (name.kind == Name::Kind::kLease) letter = Letter::kLease;
    const std::string pool =
        name.kind == Name::Kind::kSlot || name.pool.empty() ? "" : name.pool + "/";
    return pool + (name.by_id ? id_text(letter, name.number) : number_text(letter, name.number));
}

void check_named(const std::string& text) {
    if (text.empty()) throw Failure(kExitUsage, "an empty name names nothing");
}

Name parse_name(const std::string& text) {
    check_named(text);
    if (const auto bare = numeral_of(text)) {
        throw Failure(kExitUsage, readings(text, bare->is_id) + ": write the one that you mean");
    }
    if (const auto name = lettered(text)) return *name;
    if (is_client(text)) return {Name::Kind::kClient, text, 0, false};
    const size_t slash = text.find('/');
    if (slash == std::string::npos) return {Name::Kind::kPool, text, 0, false};
    if (slash != 0) {
        if (auto name = lettered(text.substr(slash + 1))) {
            name->pool = text.substr(0, slash);
            return *name;
        }
    }
    const auto number = number_of(std::string_view(text).substr(slash + 1), 10);
    if (!number || slash == 0 || *number >= UINT32_MAX) {
        throw Failure(kExitUsage,
                      quoted(text) +
                          ": behind POOL/ stands a slot's number, a claim or a lease, such as "
                          "gpu/0, gpu/c12 or gpu/l12");
    }
    return {Name::Kind::kSlot, text.substr(0, slash), *number, false};
}

Name parse_claim(const std::string& text, const std::string& word) {
    return of_kind(text, word, Name::Kind::kClaim);
}

Name parse_lease(const std::string& text, const std::string& word) {
    return of_kind(text, word, Name::Kind::kLease);
}

// A number is of the claim and of its lease: if it is not there as the one, it may be as the other.
std::unique_ptr<admin::ClaimT> find_claim(AdminClient& client, const Name& name) {
    if (auto claim = look_for_claim(client, name)) return claim;
    const Name lease{Name::Kind::kLease, name.pool, name.number, false};
    if (!name.by_id && look_for_lease(client, lease) != nullptr) {
        throw Failure(kExitNotFound,
                      "claim " + shown(name) + " does not wait any more: it has its lease, " +
                          shown(lease) + "; dibs show " + shown(lease) + " shows it");
    }
    // A claim that waits again was in neither list for a moment.
    if (auto claim = look_for_claim(client, name)) return claim;
    throw Failure(kExitNotFound, gone(client, name));
}

std::unique_ptr<admin::LeaseT> find_lease(AdminClient& client, const Name& name) {
    if (auto lease = look_for_lease(client, name)) return lease;
    const Name claim{Name::Kind::kClaim, name.pool, name.number, false};
    if (!name.by_id && look_for_claim(client, claim) != nullptr) {
        throw Failure(kExitNotFound,
                      "claim " + shown(claim) + " still waits and has no lease; dibs cancel " +
                          shown(claim) + " ends it");
    }
    throw Failure(kExitNotFound,
                  (client.welcome().is_admin != 0 ? "there is no lease " : "you hold no lease ") +
                      shown(name) + "; dibs ls leases shows those that are held");
}

std::unique_ptr<admin::LeaseT> find_ended(AdminClient& client, const Name& name) {
    if (!is_one(name)) return nullptr;
    admin::RequestT request;
    request.ask = admin::Ask::inspect;
    (name.by_id ? request.id : request.number) = name.number;
    admin::AnswerT answer = client.ask(request);
    const bool has_ended =
        answer.leases.size() == 1 && answer.leases.front()->ended && answer.leases.front()->full;
    return has_ended ? std::move(answer.leases.front()) : nullptr;
}

}  // namespace dibs::ctl
