// broker/ctl/exec/holder.cpp -- attach, claim, execute.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/holder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "broker/ctl/exec/grant.hpp"
#include "broker/ctl/exec/lease_environment.hpp"
#include "broker/ctl/exec_strings.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/sheet.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl::exec {

void tell_grant(const Options& options, const dibs_lease& lease) {
    if (!options.verbose) return;
    std::fprintf(stderr,
                 "dibs exec: lease %s of pool \"%s\", fence %llu, %u slot%s\n",
                 id_text(lease.id).c_str(),
                 options.pool.name.c_str(),
                 static_cast<unsigned long long>(lease.fence),
                 lease.units,
                 lease.units == 1 ? "" : "s");
}

void become(const Options& options, const std::vector<std::string>& environment) {
    const std::vector<char*> argv = pointers_to(options.command);
    const std::vector<char*> envp = pointers_to(environment);
    execvpe(options.program.c_str(), argv.data(), envp.data());
    const int error = errno;
    std::fprintf(stderr,
                 "dibs exec: cannot execute %s: %s\n",
                 options.program.c_str(),
                 std::strerror(error));
    _exit(error == ENOENT ? kExitNoCommand : kExitCannotExecute);
}

void claim_and_become(const Options& options) {
    try {
        const Attachment attachment(options.socket, small_session());
        const uint32_t pool = attachment.pool(options.pool.name);
        const dibs_lease lease = claim(attachment, pool, options).lease;
        const auto environment = lease_environment(attachment, pool, lease, options);
        tell_grant(options, lease);
        become(options, environment);
    } catch (const Failure& failure) {
        std::fprintf(stderr, "dibs exec: %s\n", failure.what());
        _exit(failure.exit_code());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "dibs exec: %s\n", error.what());
        _exit(kExitOwnFailure);
    }
}

}  // namespace dibs::ctl::exec
