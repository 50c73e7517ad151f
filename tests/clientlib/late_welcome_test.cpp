// tests/clientlib/late_welcome_test.cpp -- an answer that comes when its client has given up.
//
// What comes in the last moment is looked at once more; what comes later cannot be sent.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "dibs/dibs.h"
#include "shm/descriptor.hpp"
#include "shm/handshake.hpp"
#include "shm/layout.hpp"
#include "shm/operation.hpp"
#include "shm/ring.hpp"

namespace dibs::test {
namespace {

// What happens between the library's wait and its last look.
std::function<void()> in_the_last_moment;

}  // namespace
}  // namespace dibs::test

// In place of libc's, for the library that is linked with this program.
extern "C" int shutdown(int socket, int how) noexcept {
    if (auto now = std::exchange(dibs::test::in_the_last_moment, nullptr)) now();
    return static_cast<int>(syscall(SYS_shutdown, socket, how));
}

namespace dibs::test {
namespace {

shm::Descriptor segment(uint64_t size) {
    shm::Descriptor memfd(memfd_create("segment", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(memfd.get(), static_cast<off_t>(size)), 0);
    return memfd;
}

void send_with(int socket, const shm::Welcome& welcome, const std::vector<int>& descriptors) {
    iovec part = {const_cast<shm::Welcome*>(&welcome), sizeof welcome};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8)] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    ASSERT_EQ(sendmsg(socket, &message, MSG_NOSIGNAL), ssize_t{sizeof welcome});
}

TEST(LateWelcome, ClosesTheBrokersSession) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const shm::SessionSizes sizes = shm::wanted_sizes(shm::Hello{});
    const shm::Descriptor up = segment(shm::plan_up(sizes).size);
    const shm::Descriptor down = segment(shm::plan_down(sizes).size);
    const shm::Descriptor bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    shm::Welcome welcome;
    welcome.layout_version = shm::kLayoutVersion;
    welcome.submission_entries = sizes.submission_entries;
    welcome.completion_entries = sizes.completion_entries;
    welcome.up_payload = sizes.up_payload;
    welcome.down_payload = sizes.down_payload;
    welcome.tags = sizes.tags;
    std::vector<int> descriptors(static_cast<size_t>(shm::WelcomeDescriptor::kCount), down.get());
    descriptors[static_cast<size_t>(shm::WelcomeDescriptor::kUp)] = up.get();
    descriptors[static_cast<size_t>(shm::WelcomeDescriptor::kBell)] = bell.get();
    in_the_last_moment = [&] { send_with(ends[1], welcome, descriptors); };
    char text[256] = {};
    dibs_connect_options options = {};
    options.size = sizeof options;
    options.connected = &ends[0];
    options.timeout_ns = 5 * DIBS_MILLISECOND;
    options.error_text = text;
    options.error_text_size = sizeof text;
    dibs_session* session = nullptr;
    EXPECT_EQ(dibs_connect(&options, &session), DIBS_ENOBROKER);
    EXPECT_STREQ(text, "the broker does not answer in time");
    shm::SubmissionEntry first;
    const auto at = static_cast<off_t>(shm::plan_up(sizes).submission);
    ASSERT_EQ(pread(up.get(), &first, sizeof first, at), ssize_t{sizeof first});
    EXPECT_EQ(first.op, shm::Op::kClose);
    uint64_t tail = 0;
    ASSERT_EQ(pread(up.get(), &tail, sizeof tail, offsetof(shm::UpHead, submission_tail)), 8);
    EXPECT_EQ(tail, 1U);
    // Whoever sends later hears that nobody reads it.
    EXPECT_EQ(send(ends[1], &welcome, sizeof welcome, MSG_NOSIGNAL), -1);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(close(ends[0]), 0);
    EXPECT_EQ(close(ends[1]), 0);
}

}  // namespace
}  // namespace dibs::test
