// broker/ctl/admin/name.cpp -- names, and what they stand for.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/name.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/sheet.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

constexpr uint64_t kIdsFrom = uint64_t{1} << 32U;  // generations begin at 1

std::optional<uint64_t> number_of(std::string_view text, int base) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

bool is_client(std::string_view text) {
    const size_t dot = text.find('.');
    return text.size() > 1 && text[0] == 's' && dot != std::string_view::npos &&
           number_of(text.substr(1, dot - 1), 10) && number_of(text.substr(dot + 1), 10);
}

std::string shown(const Name& name) {
    return name.kind == Name::Kind::kId ? id_text(name.number) : std::to_string(name.number);
}

// The one of the rows that has the number or id.
template <class Rows>
typename Rows::value_type pick(Rows rows, const Name& name) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) {
        return row->full && (name.kind == Name::Kind::kId ? row->id : row->number) == name.number;
    });
    return found == rows.end() ? nullptr : std::move(*found);
}

bool is_number_or_id(const Name& name) {
    return name.kind == Name::Kind::kId || (name.kind == Name::Kind::kNumber && name.number != 0);
}

uint64_t number_asked(const Name& name) {
    return name.kind == Name::Kind::kNumber ? name.number : 0;
}

}  // namespace

Name parse_name(const std::string& text) {
    if (text.empty()) throw Failure(kExitUsage, "an empty name names nothing");
    if (const auto number = number_of(text, 10)) {
        return {*number < kIdsFrom ? Name::Kind::kNumber : Name::Kind::kId, {}, *number};
    }
    if (text.starts_with("0x")) {
        if (const auto id = number_of(std::string_view(text).substr(2), 16)) {
            return {Name::Kind::kId, {}, *id};
        }
    }
    if (is_client(text)) return {Name::Kind::kClient, text, 0};
    const size_t slash = text.rfind('/');
    if (slash == std::string::npos) return {Name::Kind::kPool, text, 0};
    const auto number = number_of(std::string_view(text).substr(slash + 1), 10);
    if (!number || slash == 0 || *number >= UINT32_MAX) {
        throw Failure(kExitUsage, "\"" + text + "\": a slot is named POOL/NUMBER, such as gpu/0");
    }
    return {Name::Kind::kSlot, text.substr(0, slash), *number};
}

std::unique_ptr<admin::ClaimT> look_for_claim(AdminClient& client, const Name& name) {
    if (!is_number_or_id(name)) return nullptr;
    return pick(client.claims("", number_asked(name)), name);
}

std::unique_ptr<admin::LeaseT> look_for_lease(AdminClient& client, const Name& name) {
    if (!is_number_or_id(name)) return nullptr;
    return pick(client.leases("", number_asked(name)), name);
}

std::unique_ptr<admin::ClaimT> find_claim(AdminClient& client, const Name& name) {
    if (name.kind != Name::Kind::kNumber && name.kind != Name::Kind::kId) {
        throw Failure(kExitUsage, "a claim is named by its number; dibs ls claims shows it");
    }
    if (auto claim = look_for_claim(client, name)) return claim;
    if (look_for_lease(client, name) != nullptr) {
        throw Failure(kExitNotFound,
                      "claim " + shown(name) +
                          " does not wait any more: it has its lease; dibs show " + shown(name) +
                          " shows it");
    }
    throw Failure(
        kExitNotFound,
        "no claim " + shown(name) + " of yours waits; dibs ls claims shows those that do");
}

std::unique_ptr<admin::LeaseT> find_lease(AdminClient& client, const Name& name) {
    if (name.kind != Name::Kind::kNumber && name.kind != Name::Kind::kId) {
        throw Failure(kExitUsage,
                      "a lease is named by its claim's number or by its id, 0x...; dibs ls leases "
                      "shows both");
    }
    if (auto lease = look_for_lease(client, name)) return lease;
    if (look_for_claim(client, name) != nullptr) {
        throw Failure(kExitNotFound,
                      "claim " + shown(name) + " still waits and has no lease; dibs cancel " +
                          shown(name) + " ends it");
    }
    throw Failure(
        kExitNotFound,
        "you hold no lease " + shown(name) + "; dibs ls leases shows those that are held");
}

}  // namespace dibs::ctl
