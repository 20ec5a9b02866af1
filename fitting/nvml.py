"""This machine's GPUs through NVML, NVIDIA's management library, without a package for it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Protocol

from optgap.models.errors import InputError, NoQuote

LIBRARY = "libnvidia-ml.so.1"
SM_CLOCK, MEMORY_CLOCK = 1, 2
NOT_SUPPORTED = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at one GPU; None for what the board does not tell."""

    power_w: float | None
    frequency_mhz: float | None
    memory_mhz: float | None
    util_percent: float | None
    power_limit_w: float | None


class Gpus(Protocol):
    """What a sampler needs of a machine's GPUs."""

    @property
    def names(self) -> list[str]: ...

    def read(self, index: int) -> Reading: ...

    def close(self) -> None: ...


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Nvml:
    """NVML by ctypes.

    Parameters
    ----------
    library: the loaded library; None (default) loads ``libnvidia-ml.so.1``.

    Raises
    ------
    InputError: where there is no NVIDIA driver, or it shows no GPU.
    """

    def __init__(self, library: Any = None) -> None:
        self._library = _load() if library is None else library
        code = self._library.nvmlInit_v2()
        if code != 0:
            found = NoQuote(f"NVML error {code}")
            raise InputError("profile", "", found, "an NVIDIA driver that answers")
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        self._handles = []
        for index in range(count.value):
            handle = ctypes.c_void_p()
            self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            self._handles.append(handle)
        if not self._handles:
            self.close()
            raise InputError("profile", "", NoQuote("no GPU"), "at least one NVIDIA GPU")

    @property
    def names(self) -> list[str]:
        """The GPUs' names in NVML's order."""
        found = []
        for handle in self._handles:
            text = ctypes.create_string_buffer(96)
            self._call("nvmlDeviceGetName", handle, text, ctypes.c_uint(96))
            found.append(text.value.decode(errors="replace"))
        return found

    def read(self, index: int) -> Reading:
        """Power, clocks, utilisation and power limit of one GPU now."""
        handle = self._handles[index]
        use = _Utilization()
        code = self._library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(use))
        return Reading(
            self._milli("nvmlDeviceGetPowerUsage", handle),
            self._number("nvmlDeviceGetClockInfo", handle, ctypes.c_uint(SM_CLOCK)),
            self._number("nvmlDeviceGetClockInfo", handle, ctypes.c_uint(MEMORY_CLOCK)),
            float(use.gpu) if code == 0 else None,
            self._milli("nvmlDeviceGetEnforcedPowerLimit", handle),
        )

    def close(self) -> None:
        """Give the library back."""
        self._library.nvmlShutdown()

    def _milli(self, name: str, *arguments: Any) -> float | None:
        value = self._number(name, *arguments)
        return None if value is None else value / 1000

    def _number(self, name: str, *arguments: Any) -> float | None:
        value = ctypes.c_uint()
        code = getattr(self._library, name)(*arguments, ctypes.byref(value))
        if code == NOT_SUPPORTED:
            return None
        self._check(name, code)
        return float(value.value)

    def _call(self, name: str, *arguments: Any) -> None:
        self._check(name, getattr(self._library, name)(*arguments))

    def _check(self, name: str, code: int) -> None:
        if code != 0:
            found = NoQuote(f"error {code} from {name}")
            raise InputError("profile", "", found, "an answer from the NVIDIA driver")


def _load() -> Any:
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        found = NoQuote(f"no {LIBRARY}")
        raise InputError("profile", "", found, "a machine with an NVIDIA GPU and driver") from None
