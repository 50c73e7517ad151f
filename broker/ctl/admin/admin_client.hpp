// broker/ctl/admin/admin_client.hpp -- an admin conversation with the broker (schemas/admin.fbs).
// An error is a Failure that says what went wrong, where, and what to do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "broker/ctl/attachment.hpp"
#include "schemas/admin_generated.h"
#include "shm/descriptor.hpp"
#include "shm/handshake.hpp"

namespace dibs::ctl {

class Failure;

// From where rows are looked at.
struct Viewpoint {
    uint64_t wall_ns = 0;    // the instant, by the wall clock
    bool processes = false;  // the broker's process numbers are those that /proc has here
};

class AdminClient {
  public:
    // `socket` empty: where libdibs looks. `answer_timeout_ns`: for a broker that is there and says
    // nothing. Failure.
    explicit AdminClient(const std::string& socket, int64_t answer_timeout_ns = kAnswerTimeoutNs);

    // Whatever the answer's code. Failure: the broker is gone, or says nonsense.
    admin::AnswerT ask(const admin::RequestT& request);
    // The two halves of that: for answers that come unasked.
    void say(const admin::RequestT& request);
    admin::AnswerT hear();
    [[nodiscard]] int fd() const { return socket_.get(); }
    // The answer to something that must be there and allowed; `what` names it in the Failure, or is
    // empty where the subcommand's name says it.
    admin::AnswerT must(const admin::RequestT& request, const std::string& what);
    // Failure unless the answer's code is ok.
    void check(const admin::AnswerT& answer,
               const admin::RequestT& request,
               const std::string& what);
    // What only administrators may do, and which users those are; `what` empty: the subcommand.
    [[nodiscard]] Failure denied(const std::string& what) const;
    // It is a pool set's name, or unknown; `pools` are those that exist.
    [[nodiscard]] Failure no_such_pool(const std::string& name,
                                       const std::vector<std::string>& pools);
    // The subcommand takes pool sets, too, so an unknown name may be meant as one.
    void take_sets() { takes_sets_ = true; }
    // Asks page by page to the end.
    void pages(admin::RequestT request,
               const std::string& what,
               const std::function<void(admin::AnswerT&)>& take);

    std::vector<std::unique_ptr<admin::PoolT>> pools(const std::string& only);
    // By number, as people see them: ordered; 0 = all.
    std::vector<std::unique_ptr<admin::SlotT>> slots(const std::string& pool, uint64_t number);
    std::vector<std::unique_ptr<admin::ClaimT>> claims(const std::string& pool, uint64_t number);
    std::vector<std::unique_ptr<admin::LeaseT>> leases(const std::string& pool, uint64_t number);
    std::vector<std::unique_ptr<admin::ClientT>> clients(bool workers);
    std::vector<std::unique_ptr<admin::AccountT>> accounts();  // by name
    std::vector<std::unique_ptr<admin::SetT>> sets();          // pool sets, as the file has them
    // Of dispatched pools: by pool, those that wait first, in their order.
    std::vector<std::unique_ptr<admin::EntryT>> entries(const std::string& pool);
    // By age. Empty: of all; `uid`: of this user's.
    std::vector<std::unique_ptr<admin::ApplicationT>> applications(const std::string& name,
                                                                   std::optional<uint32_t> uid);
    // In the order in which they were added.
    std::vector<std::unique_ptr<admin::TaskT>> tasks(const std::string& application,
                                                     std::optional<uint32_t> uid);
    // By pool, then in the order in which they are made.
    std::vector<std::unique_ptr<admin::TypeT>> types(const std::string& pool);

    // Ages that were told just now are counted back from it.
    [[nodiscard]] Viewpoint viewpoint() const;
    [[nodiscard]] const shm::AdminWelcome& welcome() const { return welcome_; }
    [[nodiscard]] std::string broker_version() const;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    void greet();
    [[noreturn]] void fail(ssize_t result) const;
    ssize_t send_packet(const void* packet, size_t size) const;
    ssize_t receive_packet();

    std::string path_;
    int64_t answer_timeout_ns_;
    bool takes_sets_ = false;
    shm::Descriptor socket_;
    shm::AdminWelcome welcome_;
    std::vector<uint8_t> packet_;
};

// The broker that follows the one of this epoch: callers wait until it listens. `ask`, if any, asks
// it, and is called again with the one behind it where it is gone. Failure.
shm::AdminWelcome await_successor(const std::string& socket,
                                  uint64_t epoch,
                                  const std::function<void(AdminClient&)>& ask = {});

// What the broker may answer late: within the wait the next one is asked where one goes. Whatever
// the answer's code.
admin::AnswerT ask_waiting(const std::string& socket, admin::RequestT request, int64_t wait_ns);

}  // namespace dibs::ctl
