#include "base/mapped_range.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

namespace strata {

namespace {

std::atomic<MappedRange*> head{nullptr};
std::mutex writers;
struct sigaction before{};
uintptr_t page_bytes = 4096;

/// What would have happened had this handler not been there. It stays in place: the next signal may be its
/// own.
void pass_on(int number, siginfo_t* info, void* context) {
    if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(number, info, context);
    const bool sent = info->si_code <= 0;  // by someone: there is no page that can't be read
    if (before.sa_handler == SIG_IGN && sent) return;
    if (before.sa_handler != SIG_IGN && before.sa_handler != SIG_DFL) return before.sa_handler(number);
    // The end of the process: where the instruction runs again, or when this handler returns.
    struct sigaction end{};
    end.sa_handler = SIG_DFL;
    sigaction(SIGBUS, &end, nullptr);
    if (sent) raise(number);
}

/// mmap is a bare system call; nothing else here takes a lock or memory.
void on_bus_error(int number, siginfo_t* info, void* context) {
    const int saved = errno;
    MappedRange* range = info->si_code > 0 ? MappedRange::find(reinterpret_cast<uintptr_t>(info->si_addr))
                                           : nullptr;  // not a page: someone sent the signal
    if (!range || !range->fill_from(reinterpret_cast<uintptr_t>(info->si_addr)))
        pass_on(number, info, context);
    errno = saved;
}

void install() {
    page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action{};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &before);
}

}  // namespace

MappedRange* MappedRange::watch(const uint8_t* data, size_t size_bytes) {
    std::lock_guard lock(writers);
    static const bool installed = (install(), true);
    (void)installed;
    MappedRange* range = head.load(std::memory_order_relaxed);
    while (range && range->begin_.load(std::memory_order_relaxed) != 0) range = range->next_;
    const bool fresh = !range;
    if (fresh) {
        range = new MappedRange;  // for the life of the process
        range->next_ = head.load(std::memory_order_relaxed);
    }
    const auto begin = reinterpret_cast<uintptr_t>(data);
    range->lost_.store(false, std::memory_order_relaxed);
    range->end_.store(begin + size_bytes, std::memory_order_relaxed);
    range->begin_.store(begin, std::memory_order_release);
    if (fresh) head.store(range, std::memory_order_release);
    return range;
}

void MappedRange::forget() { begin_.store(0, std::memory_order_release); }

MappedRange* MappedRange::find(uintptr_t address) {
    for (MappedRange* range = head.load(std::memory_order_acquire); range; range = range->next_) {
        const uintptr_t begin = range->begin_.load(std::memory_order_acquire);
        const uintptr_t end =
            (range->end_.load(std::memory_order_relaxed) + page_bytes - 1) & ~(page_bytes - 1);
        if (begin != 0 && begin <= address && address < end) return range;
    }
    return nullptr;
}

bool MappedRange::fill_from(uintptr_t address) {
    const uintptr_t page = address & ~(page_bytes - 1);
    lost_.store(true, std::memory_order_release);  // before the zeros can be read
    const size_t rest = end_.load(std::memory_order_relaxed) - page;
    return ::mmap(reinterpret_cast<void*>(page), rest, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                  0) != MAP_FAILED;
}

}  // namespace strata
