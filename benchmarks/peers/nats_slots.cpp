// benchmarks/peers/nats_slots.cpp -- slots that a service behind a NATS server hands out.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <stdexcept>
#include <system_error>

#include "benchmarks/peer.hpp"
#include "benchmarks/peers/kinds.hpp"
#include "benchmarks/peers/line_socket.hpp"
#include "benchmarks/peers/server_process.hpp"
#include "benchmarks/scratch_folder.hpp"

namespace dibs::bench {

namespace {

uint16_t free_port() {
    const shm::Descriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (bind(probe.get(), any, size) != 0 || getsockname(probe.get(), any, &size) != 0) {
        throw std::system_error(errno, std::generic_category(), "bind");
    }
    return ntohs(address.sin_port);
}

struct Message {
    std::string subject;
    std::string reply;
    std::string body;
};

class NatsClient {
  public:
    // Connects, and returns when the server has taken the subscription; false: no server is there.
    bool join(uint16_t port, const std::string& subject) {
        socket_ = {};
        if (!socket_.connect_to(port)) return false;
        socket_.expect("INFO");
        socket_.send("CONNECT {\"verbose\":false}\r\nSUB " + subject + " 1\r\nPING\r\n");
        socket_.expect("PONG");
        return true;
    }
    void publish(const std::string& subject, const std::string& reply, const std::string& body) {
        socket_.send("PUB " + subject + " " + reply + " " + std::to_string(body.size()) + "\r\n" +
                     body + "\r\n");
    }
    Message receive() {
        std::string_view line = socket_.line();
        for (; line == "PING"; line = socket_.line())
            socket_.send("PONG\r\n");
        // MSG SUBJECT 1 [REPLY] SIZE
        std::string_view words[5];
        size_t count = 0;
        while (count < 5 && !line.empty()) {
            words[count++] = line.substr(0, line.find(' '));
            line.remove_prefix(std::min(line.size(), words[count - 1].size() + 1));
        }
        if (words[0] != "MSG") throw std::runtime_error("NATS: " + std::string(words[0]));
        Message message;
        message.subject = words[1];
        if (count == 5) message.reply = words[3];
        message.body = socket_.line();
        return message;
    }

  private:
    LineSocket socket_;
};

// Answers each "slots.take" with a slot as soon as there is one, in order of arrival.
void serve(NatsClient& client, uint32_t slots) {
    std::deque<std::string> free;
    std::deque<std::string> waiting;
    for (uint32_t i = 0; i < slots; ++i)
        free.push_back(std::to_string(i));
    for (;;) {
        const Message message = client.receive();
        message.subject == "slots.take" ? waiting.push_back(message.reply)
                                        : free.push_back(message.body);
        for (; !waiting.empty() && !free.empty(); waiting.pop_front(), free.pop_front())
            client.publish(waiting.front(), "", free.front());
    }
}

class NatsSlots final : public SlotSource {
  public:
    NatsSlots(uint32_t slots, const Cpus& cpus)
        : port_(free_port()),
          server_({{find_program("nats-server"),
                    "--addr",
                    "127.0.0.1",
                    "--port",
                    std::to_string(port_)},
                   cpus,
                   folder_.file("log")},
                  [this] { return client_.join(port_, "slots.*"); }),
          service_(
              cpus.first,
              [this, slots](const Peer::Running& /*running*/) { serve(client_, slots); },
              cpus.second) {
        service_.start();
    }
    void attach(uint32_t worker) override {
        inbox_ = "inbox." + std::to_string(worker);
        if (!client_.join(port_, inbox_)) throw std::runtime_error("no connection to NATS");
    }
    void claim() override {
        client_.publish("slots.take", inbox_, "");
        slot_ = client_.receive().body;
    }
    // Nobody waits for an answer, as with dibs.
    void release() override { client_.publish("slots.give", "", slot_); }
    [[nodiscard]] std::vector<pid_t> servers() const override {
        return {server_.pid(), service_.pid()};
    }

  private:
    ScratchFolder folder_;
    uint16_t port_;
    NatsClient client_;
    ServerProcess server_;
    Peer service_;
    std::string inbox_;
    std::string slot_;
};

}  // namespace

Kind nats_kind() {
    return {
        "NATS, request and reply",
        find_program("nats-server").empty() ? "the package nats-server is not installed" : "",
        [](uint32_t slots, const Cpus& cpus) { return std::make_unique<NatsSlots>(slots, cpus); }};
}

}  // namespace dibs::bench
