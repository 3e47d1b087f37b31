#pragma once

#include <cstdint>
#include <string>

namespace strata {

class Pace;

/// A piece of work prepared for one device: a captured graph on a GPU, a function for the worker's team on
/// the CPU. What it works on (inputs, buffers) is fixed when it is prepared; the inputs' values are staged
/// before it is submitted.
class Program {
  public:
    virtual ~Program() = default;
};

/// Counts the programs submitted to one device, from 1.
using Ticket = uint64_t;

/// Executes programs in order. One thread (the session's control thread) submits.
class Device {
  public:
    virtual ~Device() = default;
    virtual std::string describe() const = 0;
    /// False if the system refused the cores that it was to run on.
    virtual bool pinned() const { return true; }

    /// Queues `program`, which must stay alive and prepared for this device until its ticket has finished.
    virtual Ticket submit(Program& program) = 0;
    /// All tickets up to this one have finished; what they wrote is visible to the caller.
    virtual Ticket finished() const = 0;
    /// When a finished ticket's program ended. Kept for the last 64 tickets.
    virtual uint64_t finished_ns(Ticket ticket) const = 0;
    /// What the host does upon a finished ticket counts from then on: a device with a clock tells it a moment
    /// early. Kept as long as finished_ns().
    virtual uint64_t told_ns(Ticket ticket) const = 0;
    /// Grows while a program is at work: however long it takes, it does not stand still.
    virtual uint64_t progress() const = 0;
    /// The windows up to this one were rolled back: nothing waits for the end of their forward programs.
    virtual void cut_runs(uint32_t window) = 0;
    /// They are over: nothing waits for the end of any program of theirs.
    virtual void cut(uint32_t window) = 0;
    /// What its programs are timed by; null where they take their own time.
    virtual Pace* pace() const { return nullptr; }

    /// Has a program failed since the last clear? It still counts as finished.
    virtual bool failed() const = 0;
    /// The text of the first error since the last clear; empty if none.
    virtual std::string failure() const = 0;
    virtual void clear_failure() = 0;
};

}  // namespace strata
