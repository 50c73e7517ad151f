// benchmarks/peers/zeromq_slots.cpp -- slots that a process hands out over ZeroMQ's REQ and REP.
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "benchmarks/peer.hpp"
#include "benchmarks/peers/kinds.hpp"
#include "benchmarks/peers/library.hpp"
#include "benchmarks/scratch_folder.hpp"

namespace dibs::bench {

namespace {

constexpr int kReq = 3;  // ZMQ_REQ, ZMQ_REP of zmq.h
constexpr int kRep = 4;
constexpr int32_t kAsk = -1;     // asks for a slot; any other request returns one
constexpr int32_t kNoSlot = -1;  // answers: no slot is free

const Library& zeromq_library() {
    static const Library loaded("libzmq.so.5");
    return loaded;
}

struct ZeromqFunctions {
    void* (*ctx_new)();
    int (*ctx_term)(void*);
    void* (*socket)(void*, int);
    int (*close)(void*);
    int (*bind)(void*, const char*);
    int (*connect)(void*, const char*);
    int (*send)(void*, const void*, size_t, int);
    int (*recv)(void*, void*, size_t, int);
    ZeromqFunctions() {
        zeromq_library().load(ctx_new, "zmq_ctx_new");
        zeromq_library().load(ctx_term, "zmq_ctx_term");
        zeromq_library().load(socket, "zmq_socket");
        zeromq_library().load(close, "zmq_close");
        zeromq_library().load(bind, "zmq_bind");
        zeromq_library().load(connect, "zmq_connect");
        zeromq_library().load(send, "zmq_send");
        zeromq_library().load(recv, "zmq_recv");
    }
};

class ZeromqSlots final : public SlotSource {
  public:
    ZeromqSlots(uint32_t slots, const Cpus& cpus)
        : address_("ipc://" + folder_.file("zeromq.sock")),
          service_(
              cpus.first,
              [this, slots](const Peer::Running& /*running*/) { serve(slots); },
              cpus.second) {
        service_.start();
    }
    ~ZeromqSlots() override {
        if (socket_ == nullptr) return;
        zmq_.close(socket_);
        zmq_.ctx_term(context_);
    }
    void attach(uint32_t /*worker*/) override {
        open(kReq);
        // It connects when there is somebody to connect to.
        check(zmq_.connect(socket_, address_.c_str()) == 0);
    }
    void claim() override {
        while ((slot_ = ask(kAsk)) == kNoSlot)
            sched_yield();
    }
    void release() override { ask(slot_); }
    [[nodiscard]] std::vector<pid_t> servers() const override { return {service_.pid()}; }

  private:
    static void check(bool done) {
        if (!done) throw std::runtime_error("ZeroMQ fails");
    }
    void open(int type) {
        context_ = zmq_.ctx_new();
        socket_ = zmq_.socket(context_, type);
        check(socket_ != nullptr);
    }
    void send(int32_t word) { check(zmq_.send(socket_, &word, sizeof word, 0) == sizeof word); }
    int32_t receive() {
        int32_t word = 0;
        check(zmq_.recv(socket_, &word, sizeof word, 0) == sizeof word);
        return word;
    }
    int32_t ask(int32_t word) {
        send(word);
        return receive();
    }
    // REP answers each request before it reads the next: where no slot is free it says so.
    [[noreturn]] void serve(uint32_t slots) {
        open(kRep);
        check(zmq_.bind(socket_, address_.c_str()) == 0);
        std::vector<int32_t> free(slots);
        for (uint32_t i = 0; i < slots; ++i)
            free[i] = static_cast<int32_t>(i);
        for (;;) {
            const int32_t word = receive();
            int32_t answer = kNoSlot;
            if (word != kAsk) {
                free.push_back(word);
            } else if (!free.empty()) {
                answer = free.back();
                free.pop_back();
            }
            send(answer);
        }
    }

    ScratchFolder folder_;
    std::string address_;
    ZeromqFunctions zmq_;
    void* context_ = nullptr;
    void* socket_ = nullptr;
    int32_t slot_ = kNoSlot;
    Peer service_;
};

}  // namespace

Kind zeromq_kind() {
    return {"ZeroMQ, REQ and REP",
            zeromq_library().found() ? "" : "the package libzmq5 is not installed",
            [](uint32_t slots, const Cpus& cpus) {
                return std::make_unique<ZeromqSlots>(slots, cpus);
            }};
}

}  // namespace dibs::bench
