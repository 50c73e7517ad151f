// tests/process/child.hpp -- a client in a process of its own, which a test can kill.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace dibs::test {

// Runs `body` in a child. The child says that it has come to its end by mark(); the test waits for
// it by marked(). After its body the child stays until it is killed.
class Child {
  public:
    explicit Child(const std::function<void(const Child&)>& body) {
        if (pipe(pipe_) != 0) _exit(1);
        pid_ = fork();
        if (pid_ != 0) return;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body(*this);
        mark('e');
        for (;;)
            pause();
    }
    ~Child() {
        kill();
        close(pipe_[0]);
        close(pipe_[1]);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    void mark(char what) const { (void)!write(pipe_[1], &what, 1); }
    // The next mark.
    [[nodiscard]] char marked() const {
        char what = 0;
        return read(pipe_[0], &what, 1) == 1 ? what : '\0';
    }
    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
    [[nodiscard]] pid_t pid() const { return pid_; }

  private:
    int pipe_[2] = {-1, -1};
    pid_t pid_ = -1;
};

}  // namespace dibs::test
