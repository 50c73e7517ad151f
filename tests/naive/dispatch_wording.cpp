// tests/naive/dispatch_wording.cpp -- the one-line texts of what only dispatched pools look at.
// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <string>

#include "tests/naive/wording.hpp"

namespace dibs::naive {

namespace {

template <class Enumerator, size_t kCount>
std::string word(const char* const (&words)[kCount], Enumerator enumerator) {
    const auto at = static_cast<size_t>(enumerator);
    return at < kCount ? words[at] : "?";
}

constexpr const char* kStates[] = {"queued", "locked", "running", "complete", "cancelled"};
constexpr const char* kWords[] = {"lock", "unlock", "cancel", "forget"};
constexpr const char* kWorkerStates[] = {
    "unknown", "booting", "idle", "running", "shutdown", "absent"};
constexpr const char* kBehaviours[] = {"run", "hold", "drain"};

std::string unless(const char* name, uint64_t value, uint64_t nothing) {
    return value == nothing ? "" : std::string(" ") + name + "=" + std::to_string(value);
}

std::string entry_words(const Step& step) {
    const DispatchSpec& spec = step.dispatch;
    std::string words = step.name;
    if (spec.state_given) words += " " + word(kStates, spec.state);
    if (step.terms.priority_given) words += " priority=" + std::to_string(step.claim.priority);
    if (spec.supervisor_given) words += spec.supervisor ? " supervisor" : " no-supervisor";
    if (spec.types_given) words += " types:";
    for (const std::string& type : spec.types)
        words += (spec.types_given ? " " : " -") + type;
    return words;
}

}  // namespace

std::string words_of_dispatch(const core::PoolConfig& config) {
    std::string words = "dispatch supervisors=" + std::to_string(config.supervisor_permille);
    words += unless("price-factor", config.price_factor_permille, 0);
    words += unless("attempts_max", config.attempts_max, 0);
    words += unless("stale_lock_timeout", config.stale_lock_timeout_ns, shm::kNever);
    return words + unless("probe_timeout", config.probe_timeout_ns, shm::kNever);
}

std::string dispatch_words(const Step& step) {
    const DispatchSpec& spec = step.dispatch;
    const std::string at = unless("at", step.terms.event_ns, shm::kNever);
    switch (step.kind) {
        case StepKind::kEntryReport:
            return entry_words(step) + at;
        case StepKind::kQueueRead: {
            std::string words = spec.ok ? "ok" : "failed";
            for (const std::string& name : step.labels)
                words += " " + name;
            return words + at;
        }
        case StepKind::kQueueOperation:
            return word(kWords, spec.word) + " " + step.name;
        case StepKind::kOperationDone:
            return step.name + (spec.ok ? " ok" : " failed");
        case StepKind::kWorkerReport:
            return spec.worker + " " + step.type_name + " " +
                   word(kWorkerStates, spec.worker_state) + at;
        case StepKind::kProcess:
            return step.name + " on " + spec.worker + (at.empty() ? " alive" : " exited" + at);
        case StepKind::kProbe:
            return spec.worker + (spec.ok ? " ok" : " failed") + at;
        case StepKind::kBehaviour:
            return "of " + std::to_string(step.number) + " " + word(kBehaviours, spec.behaviour);
        default:
            return {};
    }
}

}  // namespace dibs::naive
