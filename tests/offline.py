"""A process that the kernel kills, with all that it starts, at the first socket of the internet it makes.

A seccomp filter needs no privilege and is inherited; see ``man 2 seccomp`` and linux/filter.h for the numbers.
"""

import ctypes
import errno
import functools
import platform
import signal
import socket
import struct
import subprocess
import sys

import pytest

_SOCKET_CALL = {"x86_64": 41, "aarch64": 198}  # asm/unistd.h
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
_NUMBER, _FIRST_ARGUMENT = 0, 16  # offsets in struct seccomp_data
_ALLOW, _KILL_PROCESS = 0x7FFF0000, 0x80000000
_NO_NEW_PRIVS, _SET_SECCOMP, _MODE_FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def forbid_sockets():
    """Forbid sockets of the internet to this process and all that it starts; for ``preexec_fn``."""
    steps = [
        (_LOAD, 0, 0, _NUMBER),
        (_EQUAL, 0, 4, _SOCKET_CALL[platform.machine()]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 1, 0, socket.AF_INET),
        (_EQUAL, 0, 1, socket.AF_INET6),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(steps), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), errno.errorcode.get(ctypes.get_errno(), "seccomp"))


@functools.cache
def _enforced():
    if not sys.platform.startswith("linux") or platform.machine() not in _SOCKET_CALL:
        return False
    trial = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
    try:
        done = subprocess.run([sys.executable, "-c", trial], preexec_fn=forbid_sockets, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == -signal.SIGSYS


def needs_socket_filter():
    """Skip a test where the kernel takes no such filter; the filter itself is tried on a process that breaks it."""
    if not _enforced():
        pytest.skip("no seccomp filter can be set here")
