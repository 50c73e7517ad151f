// broker/ctl/worker/hand.cpp -- runs the process's side of the state machine in hand.hpp.
// Its uses are in use.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/hand.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/worker/assignment_text.hpp"
#include "broker/ctl/worker/template_text.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl::worker {

namespace {

constexpr int64_t kRetryPost = 200 * DIBS_MILLISECOND;
constexpr int64_t kWellBehaved = 10 * DIBS_SECOND;  // ready for so long: its failures are forgotten
constexpr int kEndsWithinMs = 200;
constexpr uint64_t kStrayMax = 1 << 20;  // unexpected bytes, since the last use
constexpr size_t kShownMax = 60;         // bytes of a line in a message

// Cut between two characters.
std::string shown(const std::string& line) {
    size_t size = std::min(line.size(), kShownMax);
    while (size > 0 && size < line.size() &&
           (static_cast<unsigned char>(line[size]) & 0xc0) == 0x80)
        --size;
    return "\"" + harmless(line.substr(0, size)) + (size < line.size() ? "\"..." : "\"");
}

}  // namespace

Hand::Hand(const Options& wanted, Ground& ground, uint32_t index)
    : wanted_(wanted), ground_(ground), index_(index), reader_(wanted.line_max) {
    adopt_options();
    if (!options_.type.empty()) due_ns_ = INT64_MAX;
    if (options_.service) relay_ = std::make_unique<Relay>();
}

void Hand::adopt_options() {
    options_ = wanted_;
    name_ = options_.name + "-" + std::to_string(index_);
    reader_ = LineReader(options_.line_max);
    if (!options_.notify) {
        notify_.reset();
        return;
    }
    const uid_t user = options_.user ? options_.user->uid : geteuid();
    if (!notify_ || notify_->user() != user)
        notify_ = std::make_unique<NotifySocket>(ground_.notify_path(), user);
    notify_->ready();  // what an earlier process said
}

void Hand::say(const std::string& text) const {
    talk(options_.speaker + ": " + harmless(name_) + ": " + text);
}

void Hand::watch(std::vector<pollfd>* watched) {
    const auto add = [&](int fd, short events) { watched->push_back({fd, events, 0}); };
    armed_ = post_ == nullptr || post_->arm();
    if (post_) add(post_->fd(), POLLIN);
    if (process_) {
        add(process_->pidfd(), POLLIN);
        if (process_->output() >= 0) add(process_->output(), POLLIN);
        if (!unsent_.empty() && process_->input() >= 0) add(process_->input(), POLLOUT);
    }
    if (notify_) add(notify_->fd(), POLLIN);
    if (relay_) add(relay_->reading(), POLLIN);
    if (cleaner_) add(cleaner_->pidfd(), POLLIN);
    if (leftover_.valid()) add(leftover_.get(), POLLIN);
    if (leaf_ && state_ == State::kEmptying) add(leaf_->events(), POLLPRI);
}

int64_t Hand::due_ns() const {
    const bool look_again = state_ == State::kSweeping && !leftover_.valid();
    return armed_ && !look_again ? due_ns_ : 0;
}

void Hand::look(int64_t now_ns) {
    const bool notified = notify_ && notify_->ready();
    if (relay_) relay_->pass_on(name_);
    if (process_) {
        if (notified && state_ == State::kStarting) become_ready(now_ns);
        const std::optional<int> status = process_->ended();
        take_output(now_ns);  // what it wrote before it ended counts
        if (status) take_end(*status, now_ns);
    }
    if (cleaner_) look_at_cleaner(now_ns);
    if (state_ == State::kSweeping) finish_use(now_ns);
    if (state_ == State::kEmptying) look_at_leaf(now_ns);
    if (post_) take_assignments(now_ns);
    if (now_ns >= due_ns_) take_due(now_ns);
    feed(now_ns);
}

void Hand::take_due(int64_t now_ns) {
    due_ns_ = INT64_MAX;
    switch (state_) {
        case State::kResting:
            return start(now_ns);
        case State::kStarting:
            return fail(
                "was not ready within " + shown_time(options_.ready_timeout_ns) +
                    (options_.notify ? " (it sent no READY=1 to $NOTIFY_SOCKET)"
                                     : " (it wrote no line with \"" + options_.ready_line + "\")"),
                now_ns);
        case State::kUnposted:
            return is_warm() ? stop(true, now_ns) : post(now_ns);
        case State::kIdle:  // of age
            return stop(true, now_ns);
        case State::kBusy:
            return fail("its use took longer than " + shown_time(options_.use_max_ns), now_ns);
        case State::kEnding:
            return fail("did not end what its holder has given back within " +
                            shown_time(options_.grace_ns),
                        now_ns);
        case State::kSweeping:
            return end_leftovers(now_ns);
        case State::kCleaning:
            cleaner_.reset();
            return fail(
                "the command between uses took longer than " + shown_time(options_.grace_ns),
                now_ns);
        case State::kStopping:
            killed_ = true;
            process_->signal(SIGKILL);
            if (leaf_) leaf_->kill();
            return;
        case State::kEmptying:
            return take_rest(now_ns);
        case State::kGone:
            return;
    }
}

void Hand::start(int64_t now_ns) {
    unsent_.clear();
    uses_ = 0;
    stray_bytes_ = 0;
    lines_due_ = 0;
    was_ready_ = false;
    planned_ = false;
    killed_ = false;
    told_leftovers_ = false;
    born_ns_ = now_ns;
    try {
        adopt_options();
        make_leaf();
        process_id_ = "DIBS_WORKER_ID=" + ground_.next_id();
        ProcessStart start = start_with();
        start.program = options_.program;
        for (const std::string& word : options_.command)
            start.command.push_back(with_index(word, index_));
        if (options_.session) start.variables.push_back("DIBS_ORDER=" + order_text_);
        if (notify_) start.variables.push_back("NOTIFY_SOCKET=" + notify_->path());
        start.fed = options_.lines != Lines::kNone;
        start.piped = start.fed || !options_.ready_line.empty();
        process_ = std::make_unique<Process>(start);
    } catch (const Failure& failure) {
        leaf_.reset();
        say(failure.what());
        ++failures_;
        return rest(now_ns);
    }
    state_ = State::kStarting;
    due_ns_ = after(now_ns, options_.ready_timeout_ns);
    if (options_.ready_line.empty() && !options_.notify) become_ready(now_ns);
}

ProcessStart Hand::start_with() const {
    ProcessStart start;
    start.guard = &ground_.guard();
    start.entrance = leaf_entrance();
    start.folder = options_.folder;
    start.user = options_.user ? &*options_.user : nullptr;
    start.log = relay_ ? relay_->writing() : -1;
    start.variables = options_.environment;
    start.variables.push_back("DIBS_POOL=" + options_.pool.name);
    start.variables.push_back("DIBS_WORKER_INDEX=" + std::to_string(index_));
    start.variables.push_back("DIBS_WORKER_NAME=" + name_);
    start.variables.push_back(process_id_);
    start.variables.insert(start.variables.end(), order_variables_.begin(), order_variables_.end());
    if (!options_.socket.empty()) start.variables.push_back("DIBS_SOCKET=" + options_.socket);
    return start;
}

void Hand::become_ready(int64_t now_ns) {
    was_ready_ = true;
    if (draining_) return stop(true, now_ns);
    if (!options_.session) return post(now_ns);
    state_ = State::kIdle;
    due_ns_ = INT64_MAX;
}

void Hand::post(int64_t now_ns) {
    state_ = State::kUnposted;
    // The slot of its order is gone: without one it would be nobody's to stop.
    if (!options_.type.empty() && order_text_.empty()) return be_warm();
    try {
        post_ = std::make_unique<Post>(options_, name_, index_, process_->pid(), order_text_);
        order_text_.clear();
        if (order_ && post_->slot() != *order_) {
            say("its order is over; the next one takes its process");
            return be_warm();
        }
        if (!post_trouble_.empty()) say("back: the broker has its slot");
        post_trouble_.clear();
        be_idle(now_ns);
    } catch (const Hopeless& failure) {
        if (!options_.service) throw;
        fail(std::string("has no slot: ") + failure.what(), now_ns);
    } catch (const std::exception& failure) {
        retry_post(now_ns, failure.what());
    }
}

void Hand::be_warm() {
    post_.reset();
    order_.reset();
    order_text_.clear();
    post_trouble_.clear();
    state_ = State::kUnposted;
    due_ns_ = INT64_MAX;
}

void Hand::retry_post(int64_t now_ns, const std::string& why) {
    post_.reset();
    state_ = State::kUnposted;
    due_ns_ = after(now_ns, kRetryPost);
    if (post_trouble_ == why) return;
    post_trouble_ = why;
    say(why + "; trying again");
}

// A process that ends has closed everything a moment before its end can be seen.
bool Hand::ends_soon() const {
    pollfd end = {process_->pidfd(), POLLIN, 0};
    return ::poll(&end, 1, kEndsWithinMs) > 0;
}

void Hand::take_output(int64_t now_ns) {
    if (process_->output() < 0) return;
    for (int blocks = 0; blocks < 64 && process_; ++blocks) {  // then other hands have their turn
        const LineReader::Got got = reader_.read(process_->output());
        while (const std::optional<std::string> line = reader_.next())
            take_line(*line, now_ns);
        if (reader_.overlong()) {
            reader_.clear();
            if (state_ == State::kStopping) continue;
            fail("wrote a line longer than " + std::to_string(options_.line_max) + " bytes",
                 now_ns);
        }
        if (got == LineReader::Got::kNothing) return;
        if (got == LineReader::Got::kEnd) {
            process_->close_output();
            if (!ends_soon() && state_ != State::kStopping && options_.lines != Lines::kNone) {
                fail("closed its standard output, so that it cannot answer", now_ns);
            }
            return;
        }
    }
}

void Hand::take_line(const std::string& line, int64_t now_ns) {
    if (state_ == State::kStarting) {
        if (!options_.ready_line.empty() && line.find(options_.ready_line) != std::string::npos) {
            become_ready(now_ns);
        }
    } else if (options_.lines == Lines::kNone) {
        if (options_.service) return talk(harmless(name_) + ": " + harmless(line));
        std::printf("%s\n", line.c_str());
        std::fflush(stdout);
    } else if (lines_due_ > 0 && (state_ == State::kBusy || state_ == State::kEnding)) {
        --lines_due_;
        take_answer(line, now_ns);
    } else if (state_ != State::kStopping) {
        take_stray(line, now_ns);
    }
}

void Hand::take_stray(const std::string& line, int64_t now_ns) {
    if (stray_bytes_ == 0) say("wrote a line that nobody asked for: " + shown(line));
    stray_bytes_ += line.size() + 1;
    if (stray_bytes_ > kStrayMax) fail("floods its output", now_ns);
}

void Hand::feed(int64_t now_ns) {
    if (unsent_.empty() || !process_ || process_->input() < 0) return;
    const ssize_t size = write(process_->input(), unsent_.data(), unsent_.size());
    if (size >= 0) {
        unsent_.erase(0, static_cast<size_t>(size));
    } else if (errno != EAGAIN && errno != EINTR) {
        unsent_.clear();
        process_->close_input();
        if (!ends_soon() && state_ != State::kStopping) {
            fail("closed its standard input, so that it cannot be told its uses", now_ns);
        }
    }
}

void Hand::fail(const std::string& text, int64_t now_ns) {
    say("process " + std::to_string(process_ ? process_->pid() : 0) + " " + text + "; it is ended");
    stop(false, now_ns);
}

void Hand::stop(bool planned, int64_t now_ns) {
    post_.reset();
    cleaner_.reset();
    leftover_.reset();
    unsent_.clear();
    if (state_ == State::kEmptying) {
        due_ns_ = std::min(due_ns_, after(now_ns, options_.grace_ns));
        return;
    }
    if (!process_) return be_resting(now_ns);
    planned_ = planned;
    state_ = State::kStopping;
    // One that announces its slot itself ends its uses itself, too.
    const bool uses_end = options_.session && draining_;
    due_ns_ = after(now_ns, uses_end ? options_.drain_ns : options_.grace_ns);
    process_->close_input();
    process_->signal(SIGTERM);
    process_->signal(SIGCONT);
}

void Hand::take_end(int status, int64_t now_ns) {
    const std::string who = "process " + std::to_string(process_->pid()) + " ";
    post_.reset();
    cleaner_.reset();
    process_.reset();
    leftover_.reset();
    unsent_.clear();
    if (leaf_) leaf_->kill();
    ground_.end_orphans(process_id_);
    if (relay_) relay_->finish(name_);
    const int64_t lived_ns = now_ns - born_ns_;
    // A process that had only been told to end, and was killed, was killed by another process.
    const bool by_another = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !killed_;
    const bool told = state_ == State::kStopping && !by_another;
    if (!draining_ && !planned_) {
        if (was_ready_ && lived_ns >= kWellBehaved) failures_ = 0;
        ++failures_;
        if (!told) {
            say(who + shown_end(status) + " after " + shown_time(lived_ns) +
                (was_ready_ ? "" : ", before it was ready") +
                (ran_out_of_memory() ? "; all of it was killed at its memory_max" : ""));
        }
    }
    state_ = State::kEmptying;
    due_ns_ = after(now_ns, options_.grace_ns);
    look_at_leaf(now_ns);
}

// The next one starts then; where they run for orders, with the next order.
void Hand::be_resting(int64_t due_ns) {
    if (!order_text_.empty()) failed_order_ = order_;
    order_.reset();
    order_text_.clear();
    state_ = draining_ ? State::kGone : State::kResting;
    due_ns_ = draining_ || !options_.type.empty() ? INT64_MAX : due_ns;
}

void Hand::take_order(const Order& order, int64_t now_ns) {
    order_ = order.slot;
    order_text_ = order.text;
    order_variables_ = order.variables;
    if (state_ == State::kUnposted) return post(now_ns);
    start(now_ns);
}

bool Hand::stop_order(uint64_t order, int64_t now_ns) {
    if (order_ != order) return false;
    if (state_ != State::kStopping && state_ != State::kEmptying) stop(true, now_ns);
    return true;
}

void Hand::rest(int64_t now_ns) {
    const uint64_t doublings = std::min<uint64_t>(failures_ == 0 ? 0 : failures_ - 1, 20);
    const int64_t longest = options_.backoff_max_ns;
    const int64_t wait_ns =
        options_.backoff_ns > longest >> doublings ? longest : options_.backoff_ns << doublings;
    rests_until_ns_ = after(now_ns, wait_ns);
    be_resting(rests_until_ns_);
    if (wait_ns == 0) return;
    const char* what = options_.type.empty() ? "starting again in " : "none is started for ";
    say(what + shown_time(wait_ns));
}

void Hand::drain(int64_t now_ns) {
    draining_ = true;
    if (state_ == State::kBusy || state_ == State::kEnding || state_ == State::kSweeping ||
        state_ == State::kCleaning) {
        if (post_) post_->withdraw();
        return;
    }
    if (state_ != State::kStopping && state_ != State::kGone) stop(true, now_ns);
}

void Hand::stop_now(int64_t now_ns) {
    draining_ = true;
    if (state_ == State::kEmptying) due_ns_ = now_ns;
    if (state_ != State::kGone && state_ != State::kStopping) return stop(true, now_ns);
    if (!process_) return;
    process_->signal(SIGKILL);
    if (leaf_) leaf_->kill();
}

}  // namespace dibs::ctl::worker
