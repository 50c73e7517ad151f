// broker/ctl/subcommand.hpp -- declares the subcommands of `dibs`, each a function in its own file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dibs::ctl {

// Exit codes of every subcommand.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitUnreachable = 3;  // no broker at the socket
inline constexpr int kExitNotFound = 4;
inline constexpr int kExitDenied = 5;
inline constexpr int kExitLimit = 6;
// Of those that run a command, or stand for one, as env(1) and timeout(1) have them.
inline constexpr int kExitNoneFree = 75;
inline constexpr int kExitMasked = 78;  // the slot's GPU is one that the caller may not use
inline constexpr int kExitDeadline = 124;
inline constexpr int kExitOwnFailure = 125;
inline constexpr int kExitCannotExecute = 126;
inline constexpr int kExitNoCommand = 127;

// `argv[0]` is the subcommand's own name.
int run_account(int argc, char** argv);
int run_app(int argc, char** argv);
int run_bench(int argc, char** argv);
int run_cancel(int argc, char** argv);
int run_call(int argc, char** argv);
int run_claim(int argc, char** argv);
int run_config(int argc, char** argv);
int run_discover(int argc, char** argv);
int run_drain(int argc, char** argv);
int run_hold(int argc, char** argv);
int run_inspect(int argc, char** argv);
int run_offers(int argc, char** argv);
int run_orders(int argc, char** argv);
int run_dump(int argc, char** argv);
int run_events(int argc, char** argv);
int run_exec(int argc, char** argv);
int run_explain(int argc, char** argv);
int run_fsck(int argc, char** argv);
int run_list(int argc, char** argv);
int run_load(int argc, char** argv);
int run_metrics(int argc, char** argv);
int run_pull(int argc, char** argv);
int run_record(int argc, char** argv);
int run_release(int argc, char** argv);
int run_reload(int argc, char** argv);
int run_renew(int argc, char** argv);
int run_replay(int argc, char** argv);
int run_report(int argc, char** argv);
int run_show(int argc, char** argv);
int run_snapshot(int argc, char** argv);
int run_status(int argc, char** argv);
int run_stop(int argc, char** argv);
int run_top(int argc, char** argv);
int run_undrain(int argc, char** argv);
int run_unhold(int argc, char** argv);
int run_upgrade(int argc, char** argv);
int run_version(int argc, char** argv);
int run_worker(int argc, char** argv);

}  // namespace dibs::ctl
