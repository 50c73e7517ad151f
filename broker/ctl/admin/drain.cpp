// broker/ctl/admin/drain.cpp -- `dibs drain` and `dibs undrain`: a pool, or the whole broker, takes
// no new claims.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

// No pool has a slash in its name: who writes one means a slot.
void check_is_pool(const std::string& text, const std::string& word) {
    check_named(text);
    const size_t slash = text.find('/');
    if (slash == std::string::npos || slash == 0) return;
    const std::string pool = text.substr(0, slash);
    throw Failure(kExitUsage,
                  "\"" + text + "\" is a slot, and dibs " + word +
                      " takes pools: the pool is called \"" + pool + "\", so dibs " + word + " " +
                      pool);
}

int run(const std::string& word, const std::string& about, admin::Ask ask, int argc, char** argv) {
    std::vector<std::string> pools;
    bool all = false;
    Arguments arguments(word, about);
    arguments.words("POOL", &pools, "the pools");
    arguments.flag("-a,--all", &all, "the whole broker");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    if (all == !pools.empty()) {
        throw Failure(kExitUsage, "name the pools, or say --all for the whole broker");
    }
    for (const std::string& pool : pools)
        check_is_pool(pool, word);
    AdminClient client(output.socket());
    for (const std::string& pool : pools)
        (void)client.pools(pool);  // all are there, or none is drained
    if (all) pools.emplace_back();
    Sheet sheet{"dibs.drain/1", {{"pool", "POOL"}, {"draining", "DRAINING"}}};
    for (const std::string& pool : pools) {
        admin::RequestT request;
        request.ask = ask;
        request.pool = pool;
        (void)client.must(request, pool.empty() ? "the broker" : "pool " + pool);
        sheet.rows.push_back(
            {pool.empty() ? Cell() : Cell::of(pool), Cell::of(ask == admin::Ask::drain)});
    }
    output.show_rows(sheet);
    return output.finish(kExitOk);
}

}  // namespace

int run_drain(int argc, char** argv) {
    return run("drain",
               "Stops taking claims: those that wait end rejected (draining), leases run on. The "
               "broker stays; dibs undrain ends the drain.",
               admin::Ask::drain,
               argc,
               argv);
}

int run_undrain(int argc, char** argv) {
    return run("undrain", "Takes claims again after dibs drain.", admin::Ask::undrain, argc, argv);
}

}  // namespace dibs::ctl
