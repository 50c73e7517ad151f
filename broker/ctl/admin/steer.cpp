// broker/ctl/admin/steer.cpp -- `dibs release`, `dibs renew`, `dibs cancel`.
// They act from outside the session that has the lease or claim. Its holder is told: reason
// "revoked".
// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

Sheet done(std::string_view schema, Cell number, std::string_view pool, std::string_view what) {
    Sheet sheet{schema, {{"number", "number"}, {"pool", "pool"}, {"did", "did"}}};
    sheet.rows.push_back({std::move(number), Cell::of(pool), Cell::of(what)});
    return sheet;
}

// What the three have in common: one name, a conversation, and one thing told.
class Steering {
  public:
    Steering(const std::string& subcommand,
             const std::string& about,
             const std::string& kind,
             const std::string& operand_about)
        : arguments(subcommand, about), word(subcommand), takes(kind) {
        arguments.operand(kind, &id, operand_about);
    }

    // Nothing if there is nothing to do any more.
    std::optional<int> parse(int argc, char** argv) {
        output.emplace(arguments);
        if (const auto exit = arguments.parse(argc, argv)) return *exit;
        (void)output->form();
        name = takes == "CLAIM" ? parse_claim(id, word) : parse_lease(id, word);
        client.emplace(output->socket());
        return std::nullopt;
    }
    admin::AnswerT must(admin::Ask ask, uint64_t row_id, uint64_t interval_ns = 0) {
        admin::RequestT request;
        request.ask = ask;
        request.id = row_id;
        request.interval_ns = interval_ns;
        return client->must(request, (takes == "CLAIM" ? "claim " : "lease ") + shown(name));
    }
    int tell(const Sheet& sheet) {
        output->show_record(sheet);
        return output->finish(kExitOk);
    }

    Arguments arguments;
    std::string word;
    std::string takes;  // CLAIM, LEASE
    std::string id;
    Name name;
    std::optional<Output> output;
    std::optional<AdminClient> client;
};

constexpr const char* kLeaseAbout =
    "the lease, such as l12 or l0x100000000: dibs ls leases shows them";

}  // namespace

int run_release(int argc, char** argv) {
    Steering steering("release",
                      "Ends a lease from outside, as its user or an administrator. Its holder is "
                      "told (revoked); the slots go to who waits. What has outlived its holder is "
                      "killed first.",
                      "LEASE",
                      kLeaseAbout);
    if (const auto exit = steering.parse(argc, argv)) return *exit;
    // S3.10: who gives it back once more has what is wanted.
    if (const auto ended = find_ended(*steering.client, steering.name)) {
        return steering.tell(done("dibs.release/1",
                                  Cell::numbered(Letter::kLease, ended->number),
                                  ended->pool,
                                  "already ended"));
    }
    const auto lease = find_lease(*steering.client, steering.name);
    // It has outlived its holder if the broker says more.
    const bool killing = !steering.must(admin::Ask::release, lease->id).names.empty();
    return steering.tell(done("dibs.release/1",
                              Cell::numbered(Letter::kLease, lease->number),
                              lease->pool,
                              killing ? "killing" : "released"));
}

int run_renew(int argc, char** argv) {
    int64_t interval_ns = -1;
    Steering steering("renew",
                      "Prolongs a lease from now, as its user or an administrator. A lease that is "
                      "bound to its holder's life needs none and stays as it is.",
                      "LEASE",
                      kLeaseAbout);
    steering.arguments.duration(
        "-i,--interval", &interval_ns, "for so long; else as it was granted");
    if (const auto exit = steering.parse(argc, argv)) return *exit;
    const auto lease = find_lease(*steering.client, steering.name);
    const uint64_t wanted_ns = interval_ns < 0 ? 0 : static_cast<uint64_t>(interval_ns);
    const uint64_t granted_ns = steering.must(admin::Ask::renew, lease->id, wanted_ns).granted_ns;
    Sheet sheet{"dibs.renew/1",
                {{"number", "number"}, {"pool", "pool"}, {"interval_ns", "interval"}}};
    sheet.rows.push_back({Cell::numbered(Letter::kLease, lease->number),
                          Cell::of(lease->pool),
                          granted_ns != 0 ? Cell::duration(granted_ns) : Cell()});
    return steering.tell(sheet);
}

int run_cancel(int argc, char** argv) {
    Steering steering("cancel",
                      "Ends a waiting claim from outside, as its user or an administrator. Its "
                      "session is told: cancelled (revoked).",
                      "CLAIM",
                      "the claim, such as c12: dibs ls claims shows them");
    if (const auto exit = steering.parse(argc, argv)) return *exit;
    const auto claim = find_claim(*steering.client, steering.name);
    (void)steering.must(admin::Ask::cancel, claim->id);
    return steering.tell(done(
        "dibs.cancel/1", Cell::numbered(Letter::kClaim, claim->number), claim->pool, "cancelled"));
}

}  // namespace dibs::ctl
