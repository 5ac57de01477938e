"""Run by the Windows Python at its start: what NumPy needs of Windows' C library and Wine's lacks."""

import ctypes

UNFINISHED = (bytes.fromhex("4883ec28488d0d"), bytes.fromhex("488d15"), 0xE8)
"""How a function begins that Wine only has by name: it loads the names of library and function, then gives up."""

# NumPy 2 calls the first two when it is loaded. A complex float comes in a register, a larger one by its address.
PARTS_OF_COMPLEX = {
    "crealf": "660f6ec1 c3",  # movd xmm0, ecx; ret
    "cimagf": "48c1e920 660f6ec1 c3",  # shr rcx, 32; movd xmm0, ecx; ret
    "cimag": "f20f104108 c3",  # movsd xmm0, [rcx + 8]; ret
    "cimagl": "f20f104108 c3",
    "creall": "f20f1001 c3",  # movsd xmm0, [rcx]; ret
}


def complete(functions: dict[str, str]) -> None:
    """Give those functions a body that have none. Under Windows, or a Wine that has them all, nothing is changed."""
    kernel = ctypes.WinDLL("kernel32")
    kernel.GetModuleHandleW.restype = kernel.GetProcAddress.restype = ctypes.c_void_p
    kernel.GetProcAddress.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
    kernel.VirtualProtect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_void_p)
    library = kernel.GetModuleHandleW("ucrtbase.dll")
    executable, before = 0x40, ctypes.c_uint32()
    for name, code in functions.items():
        body = kernel.GetProcAddress(library, name.encode())
        if body is None or not _is_unfinished(ctypes.string_at(body, 19)):
            continue
        new = bytes.fromhex(code)
        kernel.VirtualProtect(body, len(new), executable, ctypes.byref(before))
        ctypes.memmove(body, new, len(new))
        kernel.VirtualProtect(body, len(new), before, ctypes.byref(before))


def _is_unfinished(code: bytes) -> bool:
    return (code[:7], code[11:14], code[18]) == UNFINISHED


complete(PARTS_OF_COMPLEX)
