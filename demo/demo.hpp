// demo/demo.hpp -- declares `dibs demo`, its worker and `dibs demo-floors`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dibs::ctl {

// `dibs demo …`; argv[0] is the subcommand's name. Returns the exit code.
int run_demo(int argc, char** argv);
// `dibs demo-worker …`: hidden; one slot of the demo's pool.
int run_demo_worker(int argc, char** argv);
// `dibs demo-floors`: hidden; what a claim is compared with.
int run_demo_floors(int argc, char** argv);

}  // namespace dibs::ctl
