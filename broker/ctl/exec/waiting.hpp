// broker/ctl/exec/waiting.hpp -- says what a claim waits for while it waits.
//
// After a second, and each second from then on: at a terminal one line that is written over,
// elsewhere one line in all, if --verbose asks for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "broker/ctl/attachment.hpp"
#include "broker/ctl/exec/options.hpp"

namespace dibs::ctl::exec {

// "process 123 (python3) of user 1000"; of another user's claim no process is shown, and a user
// only where that is its account.
std::string shown_process(const dibs_holder& holder);
std::string shown_holder(const dibs_holder& holder);
std::string wanted(const Options& options);
// Why no slot came, as far as a pool of workers can tell it: no worker offers one, or none is
// ready. Empty: there is another reason.
std::string no_worker(const Attachment& attachment, uint32_t pool, const Options& options);

struct Awaited {
    dibs_completion end;
    std::string unfit;  // why no slot can serve it, as the broker said while it waited; or empty
};

// Submits the claim and waits for its outcome, as dibs_claim does. Failure: it was refused.
Awaited await_claim(const Attachment& attachment,
                    uint32_t pool,
                    const Options& options,
                    const dibs_claim_options& asked);

}  // namespace dibs::ctl::exec
