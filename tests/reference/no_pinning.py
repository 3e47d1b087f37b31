"""A process whose system refuses to pin threads: a seccomp filter answers sched_setaffinity with EPERM.

The filter is four instructions of classic BPF over `struct seccomp_data` (linux/seccomp.h, linux/filter.h).
"""

import ctypes
import errno
import platform
import struct
import sys

SCHED_SETAFFINITY = {"x86_64": 203, "aarch64": 122}.get(platform.machine(), -1)
POSSIBLE = sys.platform == "linux" and SCHED_SETAFFINITY >= 0


def refuse_pinning() -> None:
    """From here on, for this process and all its threads."""
    load, jump_equal, give = 0x20, 0x15, 0x06  # BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
    program = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            (load, 0, 0, 0),  # the number of the system call
            (jump_equal, 0, 1, SCHED_SETAFFINITY),
            (give, 0, 0, 0x00050000 | errno.EPERM),  # SECCOMP_RET_ERRNO
            (give, 0, 0, 0x7FFF0000),  # SECCOMP_RET_ALLOW
        )
    )
    code = ctypes.create_string_buffer(program, len(program))
    filter_ = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    if prctl(no_new_privileges, 1, 0, 0, 0) or prctl(set_seccomp, filter_mode, filter_, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")
