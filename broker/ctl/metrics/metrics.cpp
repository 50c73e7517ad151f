// broker/ctl/metrics/metrics.cpp -- `dibs metrics`: prints or serves metrics for Prometheus.
// SPDX-License-Identifier: Apache-2.0
#include <prometheus/text_serializer.h>

#include "broker/ctl/arguments.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/metrics/families.hpp"
#include "broker/ctl/metrics/service.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

int run_metrics(int argc, char** argv) {
    Arguments arguments("metrics",
                        "Prints what the broker counts and measures as Prometheus reads it; with "
                        "--listen serves it, while the broker comes and goes.");
    Listening listening;
    arguments.text("--listen",
                   &listening.address,
                   "serve it over HTTP at /metrics, at an address of this host such as "
                   "127.0.0.1:9464, until interrupted",
                   "ADDRESS:PORT");
    arguments.flag("--remote",
                   &listening.others_may,
                   "with --listen: the address may be one that other hosts reach");
    Output output(arguments, Output::kTextOnly);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    listening.socket = output.socket();
    if (arguments.given("--listen")) return serve_metrics(listening);
    if (listening.others_may) throw Failure(kExitUsage, "--remote goes with --listen");
    require_output();
    const int64_t begin = monotonic_ns();
    AdminClient client(listening.socket);
    Families families = families_of(client);
    add_scrape(&families, true, monotonic_ns() - begin);
    output.write(prometheus::TextSerializer().Serialize(families));
    return kExitOk;
}

}  // namespace dibs::ctl
