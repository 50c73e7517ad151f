// broker/ctl/admin/drain.cpp -- `dibs drain`, `dibs undrain`: stop and resume new grants.
// A drained pool, or the whole broker, takes no new claims; a drained slot is granted no more.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/line_wrap.hpp"

namespace dibs::ctl {

namespace {

// A pool, or a slot of one.
Name parse_drained(const std::string& text, const std::string& word) {
    Name name = parse_name(text);
    if (name.kind == Name::Kind::kPool || name.kind == Name::Kind::kSlot) return name;
    throw Failure(kExitUsage,
                  "dibs " + word + " takes pools, and slots as POOL/NUMBER, not \"" + text + "\"");
}

// A pool's drain ends, those of its slots do not: the user that ends it is reminded of them. Empty:
// the broker's.
void tell_drained(AdminClient& client, const std::string& pool) {
    std::map<std::string, uint64_t> left;
    for (const auto& slot : client.slots(pool, 0))
        if (slot->drained) ++left[slot->pool];
    for (const auto& [name, count] : left) {
        talk("dibs undrain: " + counted(count, "slot") + " of pool " + name +
             (count == 1 ? " stays" : " stay") + " drained: dibs undrain " + name +
             "/NUMBER ends that, and dibs ls slots shows them");
    }
}

// S3.12.
int run_if_idle(const std::string& pool, int64_t idle_for_ns, Output& output) {
    AdminClient client(output.socket());
    admin::RequestT request;
    request.ask = admin::Ask::drain;
    request.pool = pool;
    request.if_idle = true;
    request.interval_ns = static_cast<uint64_t>(idle_for_ns);
    const admin::AnswerT answer = client.ask(request);
    const bool is_refused = answer.code == admin::Code::refused;
    if (!is_refused) client.check(answer, request, "pool " + pool);
    Sheet sheet{"dibs.drain/1",
                {{"id", "POOL"},
                 {"pool", ""},
                 {"number", ""},
                 {"draining", "DRAINING"},
                 {"left_ns", "LEFT"}}};
    sheet.rows.push_back({Cell::of(pool),
                          Cell::of(pool),
                          Cell(),
                          Cell::of(!is_refused),
                          is_refused ? Cell::duration(answer.granted_ns) : Cell()});
    output.show_rows(sheet);
    if (is_refused) {
        talk("dibs drain: pool " + pool + ": " +
             (answer.names.empty() ? "refused" : answer.names.front()));
    }
    return output.finish(is_refused ? kExitLimit : kExitOk);
}

int run(const std::string& word, const std::string& about, admin::Ask ask, int argc, char** argv) {
    std::vector<std::string> words;
    bool all = false;
    Arguments arguments(word, about);
    arguments.words("POOL", &words, "the pools, or slots of them as POOL/NUMBER");
    arguments.flag("-a,--all", &all, "the whole broker");
    int64_t idle_for_ns = -1;
    if (ask == admin::Ask::drain) {
        arguments.duration("--if-idle-for",
                           &idle_for_ns,
                           "one pool, only if no claim waits and all its leases have been expired "
                           "for so long; they end then. Else nothing changes");
    }
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    if (idle_for_ns >= 0) {
        if (all || words.size() != 1 ||
            parse_drained(words.front(), word).kind != Name::Kind::kPool) {
            throw Failure(kExitUsage, "--if-idle-for: name one pool");
        }
        return run_if_idle(words.front(), idle_for_ns, output);
    }
    if (all && !words.empty()) {
        throw Failure(kExitUsage, "name the pools, or say --all for the whole broker, not both");
    }
    if (!all && words.empty()) {
        throw Failure(kExitUsage, "name the pools, or say --all for the whole broker");
    }
    std::vector<Name> names;
    names.reserve(words.size() + 1);
    for (const std::string& text : words)
        names.push_back(parse_drained(text, word));
    AdminClient client(output.socket());
    for (const Name& name : names) {  // all are there, or none is drained
        (void)client.pools(name.pool);
        if (name.kind == Name::Kind::kSlot) (void)client.slots(name.pool, name.number + 1);
    }
    if (all) names.emplace_back();
    Sheet sheet{"dibs.drain/1",
                {{"id", "POOL"}, {"pool", ""}, {"number", ""}, {"draining", "DRAINING"}}};
    for (const Name& name : names) {
        const bool is_slot = name.kind == Name::Kind::kSlot;
        const std::string id = is_slot ? name.pool + "/" + std::to_string(name.number) : name.pool;
        admin::RequestT request;
        request.ask = ask;
        request.pool = name.pool;
        request.number = is_slot ? name.number + 1 : 0;
        (void)client.must(request, all ? "the broker" : (is_slot ? "slot " : "pool ") + id);
        sheet.rows.push_back({all ? Cell() : Cell::of(id),
                              all ? Cell() : Cell::of(name.pool),
                              is_slot ? Cell::of(name.number) : Cell(),
                              Cell::of(ask == admin::Ask::drain)});
    }
    if (ask == admin::Ask::undrain) {
        for (const Name& name : names)
            if (name.kind != Name::Kind::kSlot) tell_drained(client, name.pool);
    }
    output.show_rows(sheet);
    return output.finish(kExitOk);
}

}  // namespace

int run_drain(int argc, char** argv) {
    return run(
        "drain",
        "Stops taking claims: those that wait end rejected (draining), leases run on. A slot "
        "is granted no more; its pool goes on with the others. dibs undrain ends the drain.",
        admin::Ask::drain,
        argc,
        argv);
}

int run_undrain(int argc, char** argv) {
    return run("undrain", "Takes claims again after dibs drain.", admin::Ask::undrain, argc, argv);
}

}  // namespace dibs::ctl
