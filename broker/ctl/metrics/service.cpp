// broker/ctl/metrics/service.cpp -- serves metrics over HTTP until a signal ends it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/metrics/service.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/metrics/families.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/stop_signals.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/terminal_text.hpp"
#include "shm/descriptor.hpp"

namespace dibs::ctl {

namespace {

constexpr int64_t kFreshNs = DIBS_SECOND;
constexpr int64_t kScrapeTimeoutNs = 2 * DIBS_SECOND;

struct Address {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    };
    socklen_t size = 0;
    bool loopback = false;
};

Failure not_an_address(const std::string& text) {
    return {
        kExitUsage,
        "--listen " + text + ": write an address and a port, such as 127.0.0.1:9464 or [::1]:9464"};
}

Address address_of(const std::string& text) {
    Address address = {};
    const size_t colon = text.rfind(':');
    uint16_t port = 0;
    if (colon == std::string::npos) throw not_an_address(text);
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + colon + 1, end, port);
    if (read.ec != std::errc{} || read.ptr != end) throw not_an_address(text);
    std::string host = text.substr(0, colon);
    if (host == "localhost") host = "127.0.0.1";
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        address.six.sin6_family = AF_INET6;
        address.six.sin6_port = htons(port);
        address.size = sizeof(address.six);
        const std::string inner = host.substr(1, host.size() - 2);
        if (inet_pton(AF_INET6, inner.c_str(), &address.six.sin6_addr) != 1) {
            throw not_an_address(text);
        }
        address.loopback = IN6_IS_ADDR_LOOPBACK(&address.six.sin6_addr) != 0;
        return address;
    }
    address.four.sin_family = AF_INET;
    address.four.sin_port = htons(port);
    address.size = sizeof(address.four);
    if (inet_pton(AF_INET, host.c_str(), &address.four.sin_addr) != 1) throw not_an_address(text);
    address.loopback = (ntohl(address.four.sin_addr.s_addr) >> 24U) == IN_LOOPBACKNET;
    return address;
}

// The server that is behind the exposer says only that it cannot; the kernel says why.
void check_free(const Address& address, const std::string& text) {
    const shm::Descriptor probe(socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    (void)setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(probe.get(), &address.any, address.size) == 0 && listen(probe.get(), 1) == 0) return;
    const int error = errno;
    std::string why = std::strerror(error);
    if (error == EADDRINUSE) why = "another program listens there; choose another port";
    if (error == EADDRNOTAVAIL) why = "this host has no such address";
    if (error == EACCES) why = "ports below 1024 are for root; choose another one";
    throw Failure(kExitFailed, "--listen " + text + ": " + why);
}

// Scrapes at the same time, or soon after, get the last result: however many clients scrape, the
// broker is asked once a second.
class Scrapes : public prometheus::Collectable {
  public:
    explicit Scrapes(std::string socket) : socket_(std::move(socket)) {}

    [[nodiscard]] Families Collect() const override {
        const std::lock_guard lock(mutex_);
        const int64_t begin = monotonic_ns();
        if (asked_ && begin - asked_ns_ < kFreshNs) return last_;
        std::string why;
        Families told;
        try {
            AdminClient client(socket_, kScrapeTimeoutNs);
            told = families_of(client);
        } catch (const std::exception& error) {
            why = error.what();
            told.clear();
        }
        const bool up = why.empty();
        if (up && !up_) talk("dibs metrics: the broker answers");
        if (!up && (up_ || !asked_)) talk("dibs metrics: dibs_up is 0: " + harmless(why));
        up_ = up;
        asked_ = true;
        asked_ns_ = monotonic_ns();
        add_scrape(&told, up, asked_ns_ - begin);
        last_ = told;
        return told;
    }

  private:
    const std::string socket_;
    mutable std::mutex mutex_;
    mutable Families last_;
    mutable int64_t asked_ns_ = 0;
    mutable bool asked_ = false;
    mutable bool up_ = true;
};

// A client that connects and says nothing has a thread until the timeout: 200 of them delay a
// scrape by two of those. No connection outlives its answer.
std::unique_ptr<prometheus::Exposer> exposer_at(const std::string& address) {
    const std::vector<std::string> options = {"listening_ports",
                                              address,
                                              "num_threads",
                                              "100",
                                              "request_timeout_ms",
                                              "500",
                                              "enable_keep_alive",
                                              "no",
                                              "enable_directory_listing",
                                              "no"};
    try {
        return std::make_unique<prometheus::Exposer>(options);
    } catch (const std::exception& error) {
        throw Failure(kExitFailed, "--listen " + address + ": " + error.what());
    }
}

}  // namespace

int serve_metrics(const Listening& listening) {
    const Address address = address_of(listening.address);
    if (!address.loopback && !listening.others_may) {
        throw Failure(kExitUsage,
                      "--listen " + listening.address +
                          ": other hosts may reach that address, and whoever does reads the names "
                          "of pools and accounts; say --remote if they shall");
    }
    ignore_lost_readers();
    // Blocked before the server's threads begin: one of the signals waits for us.
    const sigset_t stops = stop_signals();
    pthread_sigmask(SIG_BLOCK, &stops, nullptr);
    check_free(address, listening.address);
    std::string at = listening.address;
    if (at.starts_with("localhost:")) at.replace(0, std::strlen("localhost"), "127.0.0.1");
    const auto scrapes = std::make_shared<Scrapes>(listening.socket);
    const auto exposer = exposer_at(at);
    exposer->RegisterCollectable(scrapes);
    const std::vector<int> ports = exposer->GetListeningPorts();
    at.replace(at.rfind(':') + 1, std::string::npos, std::to_string(ports.at(0)));
    talk("dibs metrics: serves http://" + at + "/metrics; interrupt to end it");
    int signal = 0;
    while (sigwait(&stops, &signal) != 0) {
    }
    return kExitOk;
}

}  // namespace dibs::ctl
