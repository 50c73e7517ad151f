// tests/clientlib/fake_broker.hpp -- a broker of one thread that answers by script, so that the
// library is tested without the real one.
//
// It listens on a socket of its own in a temporary folder, makes real segments, reads the real
// rings and rings the real doorbells. What it answers is up to the test: a script gets each
// submission, on the broker's thread, and `call` runs anything else there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "shm/board.hpp"
#include "shm/doorbell.hpp"
#include "shm/handshake.hpp"
#include "shm/operation.hpp"
#include "shm/ring.hpp"
#include "tests/shm/mapping.hpp"

namespace dibs::test {

// One attached client, as the broker sees it.
class FakeSession {
  public:
    FakeSession(const shm::SessionSizes& sizes, uint32_t row);
    ~FakeSession();
    FakeSession(const FakeSession&) = delete;
    FakeSession& operator=(const FakeSession&) = delete;

    // ---- what a script says
    void complete(const shm::Completion& completion);
    void grant(const shm::Submission& claim,
               uint64_t lease,
               uint64_t fence,
               uint64_t interval_ns = 0,
               uint32_t room = shm::kNoRow,
               uint64_t number = 0);  // of the claim; 0: the fence's
    void refuse(const shm::Submission& claim, shm::Outcome outcome, shm::Reason reason);
    // The result of an operation; of a quiet one only if it failed.
    void result(const shm::Submission& entry, shm::Reason reason = shm::Reason::kOk);
    void assign(uint64_t slot, uint64_t round, uint64_t worker_tag, const std::string& payload);
    void revoke(uint64_t slot, uint64_t round, uint64_t worker_tag);
    void event(uint16_t tag, uint64_t word);
    void end(shm::Reason reason);
    // Writes a grant room of one attribute string and one answer per unit; returns its offset.
    uint32_t write_room(const std::vector<std::pair<std::string, std::string>>& units);
    // What the worker of that room's first unit says done with.
    void write_last_answer(uint32_t room, const std::string& answer);
    [[nodiscard]] std::string payload(const shm::Submission& entry) const;

    shm::UpHead& up() { return *up_.as<shm::UpHead>(); }
    shm::DownHead& down() { return *down_.as<shm::DownHead>(); }
    std::byte* down_bytes() { return down_.as<std::byte>(); }

    shm::SessionSizes sizes;
    SharedMemory up_memory;
    SharedMemory down_memory;
    int bell = -1;
    int events[2] = {-1, -1};  // ours, the client's
    int socket = -1;
    std::vector<shm::Submission> seen;  // everything that was read
    shm::SubmissionConsumer submissions;
    shm::CompletionProducer completions;
    uint32_t room_next = 0;

  private:
    void tell();

    Mapping up_;
    Mapping down_;
};

class FakeBroker {
  public:
    using Script = std::function<void(FakeSession&, const shm::Submission&)>;

    // A null script grants every claim and answers ok to everything else.
    explicit FakeBroker(Script script = nullptr);
    ~FakeBroker();
    FakeBroker(const FakeBroker&) = delete;
    FakeBroker& operator=(const FakeBroker&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }

    // Runs on the broker's thread, with the session that was opened last; returns when it ran.
    void call(const std::function<void(FakeSession&)>& work);
    // From now on no submission is read, as by a stopped broker; and again read.
    void hold();
    void go_on();
    // Closes everything, as a death does.
    void die();
    // Instead of a Welcome: these bytes (none: nothing at all is said).
    void answer_with(std::string bytes);
    // Everything that the last session has submitted so far.
    std::vector<shm::Submission> seen();
    // Waits until that many entries have been read; throws where they do not come.
    void wait_for(size_t entries);

    static constexpr std::chrono::minutes kAnswerTimeout{2};
    static constexpr uint32_t kAccounts = 3;  // that the BOARD has room for
    [[nodiscard]] std::byte* board() { return board_.as<std::byte>(); }
    void publish_pool(uint32_t pool, const std::string& name, const shm::PoolPicture& picture);

  private:
    void run();
    void open();
    bool read_submissions();
    void rest();
    void wake();

    Script script_;
    std::string folder_;
    std::string path_;
    int listener_ = -1;
    int nudge_ = -1;
    std::string answer_;
    bool answer_given_ = false;
    SharedMemory board_memory_;
    Mapping board_;

    std::mutex mutex_;
    std::condition_variable ran_;
    std::function<void(FakeSession&)> work_;
    bool held_ = false;
    bool stop_ = false;
    bool dead_ = false;
    std::vector<std::unique_ptr<FakeSession>> sessions_;
    std::thread thread_;
};

}  // namespace dibs::test
