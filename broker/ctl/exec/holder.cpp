// broker/ctl/exec/holder.cpp -- serves two requests over a pair of sockets: connect, execute.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/exec/holder.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "broker/ctl/exec_strings.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/system_failure.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl::exec {

namespace {

constexpr int kConnect = 1;  // wrapper to holder
constexpr int kExecute = 2;
constexpr int kExecuteBound = 3;  // to the wrapper's life

// A number, and a descriptor unless that is -1.
bool send_word(int channel, int word, int descriptor) {
    struct iovec part = {&word, sizeof(word)};
    alignas(struct cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
    struct msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        struct cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(descriptor));
        std::memcpy(CMSG_DATA(header), &descriptor, sizeof(descriptor));
    }
    for (;;) {
        const ssize_t sent = sendmsg(channel, &message, MSG_NOSIGNAL);
        if (sent >= 0 || errno != EINTR) return sent >= 0;
    }
}

struct Word {
    int number = 0;
    shm::Descriptor descriptor;
};

// False: the other side is gone.
bool receive_word(int channel, Word* word) {
    struct iovec part = {&word->number, sizeof(word->number)};
    alignas(struct cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
    struct msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t size = 0;
    do {
        size = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
    } while (size < 0 && errno == EINTR);
    if (size != sizeof(word->number)) return false;
    const struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(header), sizeof(descriptor));
        word->descriptor = shm::Descriptor(descriptor);
    }
    return true;
}

// The broker takes the process that calls connect() for the session's process. While the broker's
// queue of connections is full that takes as long as it may.
int connect_to(const std::string& path, int64_t answer_timeout_ns, shm::Descriptor* out) {
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
    std::memcpy(address.sun_path, path.data(), path.size());
    *out = shm::Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const struct timeval limit = {answer_timeout_ns / DIBS_SECOND,
                                  answer_timeout_ns % DIBS_SECOND / 1000};
    (void)setsockopt(out->get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    for (;;) {
        const auto* name = reinterpret_cast<const struct sockaddr*>(&address);
        if (::connect(out->get(), name, sizeof(address)) == 0) return 0;
        if (errno != EINTR) return errno;
    }
}

void write_all(int fd, const std::string& text) {
    for (size_t at = 0; at < text.size();) {
        const ssize_t size = write(fd, text.data() + at, text.size() - at);
        if (size < 0 && errno != EINTR) throw system_failure("write");
        if (size > 0) at += static_cast<size_t>(size);
    }
}

std::string read_all(int fd) {
    struct stat status = {};
    if (fstat(fd, &status) != 0) throw system_failure("fstat");
    std::string text(static_cast<size_t>(status.st_size), '\0');
    for (size_t at = 0; at < text.size();) {
        const auto place = static_cast<off_t>(at);
        const ssize_t size = pread(fd, text.data() + at, text.size() - at, place);
        if (size == 0 || (size < 0 && errno != EINTR)) throw system_failure("pread");
        if (size > 0) at += static_cast<size_t>(size);
    }
    return text;
}

}  // namespace

Holder::Holder(const Options& options) : options_(options) {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        throw system_failure("socketpair");
    }
    channel_ = shm::Descriptor(ends[0]);
    shm::Descriptor other(ends[1]);
    const pid_t wrapper = getpid();
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ < 0) throw system_failure("fork");
    if (pid_ != 0) return;
    channel_.reset();
    obey(other.get(), wrapper);
}

void Holder::obey(int channel, pid_t wrapper) const {
    try {
        for (;;) {
            Word word;
            if (!receive_word(channel, &word)) _exit(kExitOwnFailure);
            if (word.number == kConnect) {
                shm::Descriptor connected;
                const int error = connect_to(
                    socket_path(options_.socket), answer_timeout_ns(options_), &connected);
                const int descriptor = error == 0 ? connected.get() : -1;
                // The wrapper would wait for ever; it learns of our end.
                if (!send_word(channel, error, descriptor) && errno != EPIPE)
                    throw system_failure("sendmsg");
                continue;
            }
            const std::string environment = read_all(word.descriptor.get());
            if (word.number == kExecuteBound) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != wrapper) _exit(kExitOwnFailure);
            }
            become(environment);
        }
    } catch (const std::exception& error) {
        talk("dibs exec: " + harmless(error.what()));
        _exit(kExitOwnFailure);
    }
}

void Holder::become(const std::string& environment) const {
    std::vector<std::string> variables;
    for (size_t at = 0; at < environment.size();) {
        variables.emplace_back(environment.c_str() + at);
        at += variables.back().size() + 1;
    }
    const std::vector<char*> argv = pointers_to(options_.command);
    const std::vector<char*> envp = pointers_to(variables);
    restore_lost_readers();
    execvpe(options_.program.c_str(), argv.data(), envp.data());
    const int error = errno;
    ignore_lost_readers();
    talk("dibs exec: cannot execute " + harmless(options_.program) + ": " + std::strerror(error));
    _exit(error == ENOENT ? kExitNoCommand : kExitCannotExecute);
}

shm::Descriptor Holder::connect() const {
    Word word;
    if (!send_word(channel_.get(), kConnect, -1) || !receive_word(channel_.get(), &word)) {
        throw Failure(kExitOwnFailure, "the process that was to become the command has died");
    }
    if (word.number != 0) throw unreachable(socket_path(options_.socket), word.number);
    return std::move(word.descriptor);
}

void Holder::execute(const std::vector<std::string>& environment, bool bound) const {
    const shm::Descriptor file(memfd_create("dibs-environment", MFD_CLOEXEC));
    if (!file.valid()) throw system_failure("memfd_create");
    std::string text;
    for (const std::string& variable : environment)
        text += variable + '\0';
    write_all(file.get(), text);
    // A holder that has died is its caller's to see; one that lives would wait for ever.
    const bool sent = send_word(channel_.get(), bound ? kExecuteBound : kExecute, file.get());
    if (!sent && errno != EPIPE && errno != ECONNRESET) throw system_failure("sendmsg");
}

void tell_grant(const Options& options, const dibs_lease& lease) {
    if (!options.verbose) return;
    talk("dibs exec: lease " + id_text(Letter::kLease, lease.id) + " of pool \"" +
         options.pool.name + "\", fence " + std::to_string(lease.fence) + ", " +
         counted(lease.units, "slot") +
         (options.also.empty() ? "" : " in " + counted(options.also.size() + 1, "pool")));
}

}  // namespace dibs::ctl::exec
