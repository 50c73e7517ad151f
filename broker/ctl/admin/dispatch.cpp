// broker/ctl/admin/dispatch.cpp -- `dibs orders`, `dibs hold`, `dibs unhold`: of dispatched pools
// what is to be done, and of workers of elastic pools which ones stay as they are.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/listing.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

constexpr int64_t kLong = 365LL * 86'400 * 1'000'000'000;

// A line that a shell splits as it is read.
std::string line_of(const admin::OrderT& order) {
    const std::string line = std::string(admin::EnumNameOrderKind(order.kind)) + "\t" + order.entry;
    return order.worker.empty() ? line + "\n" : line + "\t" + order.worker + "\n";
}

template <class T>
Cell seen(bool is_known, const T& value) {
    return is_known ? Cell::of(value) : Cell();
}

int run_behaviour(const std::string& word,
                  const std::string& about,
                  admin::Behaviour behaviour,
                  int argc,
                  char** argv) {
    std::vector<std::string> words;
    Arguments arguments(word, about);
    arguments.operands("SLOT", &words, "slots of elastic pools, as POOL/NUMBER");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    std::vector<Name> names;
    for (const std::string& text : words) {
        names.push_back(parse_name(text));
        if (names.back().kind == Name::Kind::kSlot) continue;
        throw Failure(kExitUsage,
                      "dibs " + word + " takes slots as POOL/NUMBER, not \"" + text + "\"");
    }
    AdminClient client(output.socket());
    Sheet sheet{"dibs.hold/1", {{"id", "SLOT"}, {"pool", ""}, {"number", ""}, {"held", "HELD"}}};
    for (const Name& name : names) {
        admin::RequestT request;
        request.ask = admin::Ask::report;
        request.report = admin::ReportKind::behaviour;
        request.pool = name.pool;
        request.number = name.number + 1;
        request.behaviour = behaviour;
        const std::string id = name.pool + "/" + std::to_string(name.number);
        (void)client.must(request, "slot " + id);
        sheet.rows.push_back({Cell::of(id),
                              Cell::of(name.pool),
                              Cell::of(name.number),
                              Cell::of(behaviour == admin::Behaviour::hold)});
    }
    output.show_rows(sheet);
    return output.finish(kExitOk);
}

}  // namespace

Sheet entry_sheet(const std::vector<std::unique_ptr<admin::EntryT>>& entries) {
    Sheet sheet{"dibs.entries/1",
                {{"entry", "ENTRY"},
                 {"pool", "POOL", 4},
                 {"number", ""},
                 {"state", "STATE"},
                 {"position", "POSITION"},
                 {"reason", "REASON"},
                 {"priority", "PRIORITY", 3},
                 {"supervisor", "SUPERVISOR", 6},
                 {"types", "TYPES", 7},
                 {"worker", "WORKER"},
                 {"process", "PROCESS", 2},
                 {"exited_ns", ""},
                 {"operation", "OPERATION", 1},
                 {"hopeless", ""},
                 {"locks", "LOCKS", 5},
                 {"age_ns", "SEEN", 8}}};
    for (const auto& row : entries) {
        sheet.rows.push_back({Cell::of(row->name),
                              Cell::of(row->pool),
                              Cell::of(row->number),
                              Cell::of(row->state),
                              seen(row->position != 0, row->position),
                              seen(!row->reason.empty(), row->reason),
                              Cell::of(static_cast<uint64_t>(std::max(row->priority, 0))),
                              Cell::of(row->supervisor),
                              seen(!row->any_type, row->types),
                              seen(!row->worker.empty(), row->worker),
                              seen(!row->process.empty(), row->process),
                              row->process == "exited" ? Cell::duration(row->exited_ns) : Cell(),
                              seen(!row->op.empty(), row->op),
                              Cell::of(row->hopeless),
                              Cell::of(row->locks),
                              Cell::duration(row->age_ns)});
    }
    return sheet;
}

int run_hold(int argc, char** argv) {
    return run_behaviour("hold",
                         "Keeps workers of elastic pools as they are: a held one takes nothing new "
                         "and is not stopped, however long it is idle. dibs unhold ends that.",
                         admin::Behaviour::hold,
                         argc,
                         argv);
}

int run_unhold(int argc, char** argv) {
    return run_behaviour("unhold",
                         "Lets workers that dibs hold has held take work again, and be stopped; "
                         "drained ones, too.",
                         admin::Behaviour::run,
                         argc,
                         argv);
}

int run_orders(int argc, char** argv) {
    admin::RequestT request;
    request.ask = admin::Ask::orders;
    request.number = 64;
    int64_t wait_ns = 0;
    std::optional<uint64_t> stamp;
    Arguments arguments("orders",
                        "Tells what is to be done for a dispatched pool, the best entry's first: a "
                        "line each, lock ENTRY, unlock ENTRY, start ENTRY WORKER or kill ENTRY "
                        "WORKER, with tabs between. Each is told until dibs report says that it is "
                        "done, or of a start that the process is alive. For administrators.");
    arguments.operand("POOL", &request.pool, "the pool");
    arguments.seconds("-w,--wait",
                      &wait_ns,
                      "8760h",
                      "while there is nothing to be done: so long at most, or for ever");
    arguments.number(
        "--after", &stamp, {0, UINT64_MAX}, "with --wait: something else than what had this stamp");
    arguments.number("--count", &request.number, {1, 64}, "so many at most");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    const Form form = output.form();
    if (stamp && wait_ns == 0) throw Failure(kExitUsage, "--after goes with --wait");
    request.after_stamp = stamp.value_or(0);
    const admin::AnswerT answer = ask_waiting(output.socket(), request, std::min(wait_ns, kLong));
    if (answer.code != admin::Code::ok) {
        AdminClient(output.socket()).check(answer, request, "");
    }
    Sheet sheet{"dibs.orders/1",
                {{"order", "ORDER"},
                 {"entry", "ENTRY"},
                 {"number", ""},
                 {"worker", "WORKER"},
                 {"slot", ""},
                 {"type", ""}}};
    std::string lines;
    for (const auto& order : answer.orders) {
        lines += line_of(*order);
        const bool has_worker = !order->worker.empty();
        sheet.rows.push_back({Cell::of(admin::EnumNameOrderKind(order->kind)),
                              Cell::of(order->entry),
                              Cell::of(order->number),
                              seen(has_worker, order->worker),
                              seen(has_worker, order->slot),
                              seen(!order->type.empty(), order->type)});
    }
    sheet.stamp = answer.stamp;
    if (form == Form::kTable) {
        (void)output.write(lines);
    } else {
        output.show_rows(sheet);
    }
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
