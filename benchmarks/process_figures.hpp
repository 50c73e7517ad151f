// benchmarks/process_figures.hpp -- what the kernel counts of a process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace dibs::bench {

uint64_t voluntary_switches(pid_t pid);  // of all its threads
uint64_t minor_faults(pid_t pid);        // of all its threads
uint64_t cpu_ns(pid_t pid);              // user and system, of all its threads
uint64_t resident_bytes(pid_t pid);      // private, shared and of files
uint64_t private_bytes(pid_t pid);       // resident and private alone
// Bytes that this process maps of files whose name contains `name`.
uint64_t mapped_bytes(const std::string& name);

double load_average();  // of the last minute
std::string processor_name();
std::string kernel_name();

}  // namespace dibs::bench
