"""A process that is not there: sparse memory with real PE headers, and a game laid out in it from an address table."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from soulsgym.errors import GameGone, ReadFailed
from soulsgym.game.addresses import AddressTable, Value
from soulsgym.game.patterns import DISPLACEMENT_AT, INSTRUCTION_LENGTH

PAGE = 0x1000
BASE = 0x140000000
HEAP = 0x7FF000000
IMAGE_SIZE = 0x4800000
TEXT, EDATA, RSRC, DATA = 0x1000, 0x3000, 0x5000, 0x4400000
"""Where sections begin. Data lies so far behind the code because one pattern of Dark Souls III wants it to."""


class FakeProcess:
    """Memory of which only mapped pages can be read. Counts calls, and does as it is told in between."""

    def __init__(self, pid: int = 4711) -> None:
        self.pid = pid
        self.calls = self.reads = 0
        self.gone = False
        self.before_span: Callable[[int, tuple[int, int]], None] | None = None
        """Called before each span of a batch with its number: here a test lets time pass between two of them."""
        self.writes: list[tuple[int, bytes]] = []
        self.before_write: Callable[[int, bytes], None] | None = None
        self.closed = False
        self._pages: dict[int, bytearray] = {}
        self._modules: dict[str, int] = {}

    # ---- for tests

    def map(self, address: int, size: int) -> None:
        """Make memory readable; it is 0."""
        for page in range(address // PAGE, (address + size - 1) // PAGE + 1):
            self._pages.setdefault(page, bytearray(PAGE))

    def unmap(self, address: int, size: int = 1) -> None:
        for page in range(address // PAGE, (address + size - 1) // PAGE + 1):
            self._pages.pop(page, None)

    def put(self, address: int, data: bytes) -> None:
        """Put bytes there as the game would, without counting."""
        for offset, byte in enumerate(data):
            self._pages[(address + offset) // PAGE][(address + offset) % PAGE] = byte

    def get(self, address: int, size: int) -> bytes:
        return self._read(address, size)

    def pointer(self, address: int, target: int) -> None:
        self.put(address, struct.pack("<Q", target))

    def add_module(self, name: str, base: int, **image) -> None:
        """Load a program or DLL; see `put_image`."""
        self._modules[name.lower()] = base
        put_image(self, base, **image)

    # ---- Process

    def read_many(self, spans: Sequence[tuple[int, int]]) -> bytes:
        self.calls += 1
        parts = []
        for number, (address, size) in enumerate(spans):
            if self.before_span is not None:
                self.before_span(number, (address, size))
            self._check()
            parts.append(self._read(address, size))
        return b"".join(parts)

    def prepare(self, spans: Sequence[tuple[int, int]]) -> Callable[[], bytes]:
        fixed = tuple(spans)
        return lambda: self.read_many(fixed)

    def write(self, address: int, data: bytes) -> None:
        self.calls += 1
        self._check()
        if self.before_write is not None:
            self.before_write(address, data)
        self._read(address, len(data))
        self.writes.append((address, bytes(data)))
        self.put(address, data)

    def modules(self) -> dict[str, int]:
        self._check()
        return dict(self._modules)

    def is_running(self) -> bool:
        return not self.gone

    def close(self) -> None:
        self.closed = True

    def _check(self) -> None:
        if self.gone:
            raise GameGone("the game has ended")

    def _read(self, address: int, size: int) -> bytes:
        data, at = bytearray(), address
        while at < address + size:
            page = self._pages.get(at // PAGE)
            if page is None:
                raise ReadFailed(address, "cannot be read")
            take = min(PAGE - at % PAGE, address + size - at)
            data += page[at % PAGE : at % PAGE + take]
            at += take
        return bytes(data)


def put_image(
    process: FakeProcess,
    base: int,
    *,
    code: bytes = b"\xcc" * 64,
    version: tuple[int, int, int, int] | None = (1, 15, 2, 0),
    exports: dict[str, int] | None = None,
    size: int = IMAGE_SIZE,
) -> None:
    """Headers, code, exports (distances from the base by name) and a version resource, as a loader would put them."""
    directories = [(0, 0)] * 16
    process.map(base, PAGE)
    process.map(base + TEXT, max(len(code), 1))
    process.put(base + TEXT, code)
    if exports:
        table = _export_table(exports)
        process.map(base + EDATA, len(table) + 512)  # names are read with room to spare
        process.put(base + EDATA, table)
        directories[0] = (EDATA, len(table))
    if version is not None:
        table = _version_resource(version)
        process.map(base + RSRC, len(table))
        process.put(base + RSRC, table)
        directories[2] = (RSRC, len(table))
    sections = [(b".text", len(code), TEXT, 0x60000020), (b".rsrc", PAGE, RSRC, 0x40000040)]
    sections.append((b".data", max(size - DATA, 0), min(DATA, size), 0xC0000040))
    process.put(base, _headers(sections, directories, size))


def _headers(sections: list[tuple[bytes, int, int, int]], directories: list[tuple[int, int]], size: int) -> bytes:
    dos = bytearray(0x80)
    dos[:2] = b"MZ"
    struct.pack_into("<I", dos, 0x3C, 0x80)
    coff = struct.pack("<HHIIIHH", 0x8664, len(sections), 0, 0, 0, 240, 0x22)
    optional = bytearray(240)
    struct.pack_into("<H", optional, 0, 0x20B)
    struct.pack_into("<I", optional, 56, size)
    struct.pack_into("<I", optional, 108, 16)
    for number, (rva, length) in enumerate(directories):
        struct.pack_into("<II", optional, 112 + 8 * number, rva, length)
    table = b"".join(
        struct.pack("<8sIIIIIIHHI", name, length, rva, length, 0, 0, 0, 0, 0, flags)
        for name, length, rva, flags in sections
    )
    return bytes(dos) + b"PE\0\0" + coff + bytes(optional) + table


def _export_table(exports: dict[str, int]) -> bytes:
    names = sorted(exports)
    functions, places, numbers, texts = 40, 40 + 4 * len(names), 40 + 8 * len(names), 40 + 10 * len(names)
    table = bytearray(struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, 0, 1, len(names), len(names),
                                  EDATA + functions, EDATA + places, EDATA + numbers))  # fmt: skip
    table += b"".join(struct.pack("<I", exports[name]) for name in names)
    at = texts
    for name in names:
        table += struct.pack("<I", EDATA + at)
        at += len(name) + 1
    table += b"".join(struct.pack("<H", number) for number in range(len(names)))
    return bytes(table) + b"".join(name.encode() + b"\0" for name in names)


def _version_resource(version: tuple[int, int, int, int]) -> bytes:
    """Three levels of directories, in the middle of other kinds, and a VS_VERSIONINFO with the fixed part."""

    def directory(*entries: tuple[int, int]) -> bytes:
        return struct.pack("<IIHHHH", 0, 0, 0, 0, 0, len(entries)) + b"".join(struct.pack("<II", *it) for it in entries)

    deeper = 0x80000000
    root = directory((3, deeper | 0x200), (16, deeper | 0x30), (24, deeper | 0x200))
    assert len(root) <= 0x30
    by_name, by_language = directory((1, deeper | 0x50)), directory((1033, 0x70))
    a, b, c, d = version
    key = "VS_VERSION_INFO\0".encode("utf-16-le")
    info = struct.pack("<HHH", 92, 52, 0) + key + b"\0\0"
    info += struct.pack("<IIII", 0xFEEF04BD, 0x10000, a << 16 | b, c << 16 | d) + bytes(36)
    entry = struct.pack("<IIII", RSRC + 0x100, len(info), 0, 0)
    table = bytearray(0x200)
    for at, part in ((0, root), (0x30, by_name), (0x50, by_language), (0x70, entry), (0x100, info)):
        table[at : at + len(part)] = part
    return bytes(table)


class LaidOut:
    """A game in fake memory: every base, chain and field of an address table exists, and all values are 0."""

    def __init__(self, table: AddressTable, process: FakeProcess, heap: int = HEAP, base: int = BASE) -> None:
        self.table, self.process = table, process
        self._free, self._added = heap, 0
        self.bases = {name: base + DATA + 0x100 * number for number, name in enumerate(table.bases)}
        self.bases |= {name: base + it.rva for name, it in table.bases.items() if it.rva is not None}
        version = tuple(int(part) for part in table.file_version.split(".")) if table.file_version else None
        process.add_module(table.executable, base, code=self._code(base + TEXT) + b"\xcc" * 0x200, version=version)
        for address in self.bases.values():
            process.map(address, 0x20)
        self.links: dict[tuple[int, tuple[int, ...]], int] = {}
        """Where each pointer lies, by the address of its base and the offsets before it."""
        self.addresses = {
            name: self._lay(field.base, field.offsets, field.size) for name, field in table.fields.items()
        }
        if table.characters is not None:
            self.list_characters(*(name for name, it in table.bases.items() if it.character is not None))

    def list_characters(self, *names: str, others: int = 2) -> None:
        """Let these be loaded, behind some others of another kind."""
        listed = self.table.characters
        assert listed is not None
        entries = b""
        for number, name in enumerate((*("",) * others, *names)):
            character = self._free
            if name:
                (character,) = struct.unpack("<Q", self.process.get(self.bases[name], 8))
            else:
                self._free += 0x100000
            kind = self.table.bases[name].character if name else 8000 + number
            for offset, data in (
                (listed.number_at, struct.pack("<i", kind)),
                (listed.slot_at, struct.pack("<Q", self.bases.get(name, 0))),
            ):
                self.process.map(character + offset, 8)
                self.process.put(character + offset, data)
            entries += struct.pack("<Qf4x", character, 3.0 * number)
        self.process.map(self._free, len(entries) + 8)
        self.process.put(self._free, entries)
        self.set(**{listed.field: struct.pack("<2Q", self._free, self._free + len(entries))})
        self._free += 0x100000

    def _code(self, start: int) -> bytes:
        code = bytearray(b"\xcc" * 16)
        for name, base in self.table.bases.items():
            if base.pattern is not None:
                place = len(code)
                code += bytes(0x11 if part is None else part for part in base.pattern.parts) + b"\xcc" * 8
                distance = self.bases[name] - (start + place + INSTRUCTION_LENGTH)
                struct.pack_into("<i", code, place + DISPLACEMENT_AT, distance)
        return bytes(code)

    def add_code(self, name: str, target: int) -> None:
        """Let the code of a base occur once more, leading to `target`."""
        base = self.table.bases[name]
        place = TEXT + len(self._code(BASE + TEXT)) + 0x40 * self._added
        code = bytearray(0x11 if part is None else part for part in base.pattern.parts)
        struct.pack_into("<i", code, DISPLACEMENT_AT, target - (BASE + place + INSTRUCTION_LENGTH))
        self.process.put(BASE + place, bytes(code))
        self._added += 1

    def _lay(self, base: str, offsets: tuple[int, ...], size: int) -> int:
        at = self.bases[base]
        if self.table.bases[base].direct:
            self.process.map(at + offsets[0], size)
            return at + offsets[0]
        for depth, offset in enumerate(offsets):
            target = self._target(at, (self.bases[base], offsets[:depth]))
            at = target + offset
            self.process.map(at, max(size, 8))
        return at

    def _target(self, place: int, key: tuple[int, tuple[int, ...]]) -> int:
        if key not in self.links:
            self.links[key] = place
            self.process.pointer(place, self._free)
            self._free += 0x100000
        return struct.unpack("<Q", self.process.get(place, 8))[0]

    def set(self, **values: Value) -> None:
        """Give fields their values, as the game would."""
        for name, value in values.items():
            self.process.put(self.addresses[name], self.table.field(name).type.pack(value))

    def get(self, name: str) -> Value:
        field = self.table.field(name)
        return field.type.unpack(self.process.get(self.addresses[name], field.size))

    def link(self, field: str, depth: int) -> int:
        """Where the pointer on the way to a field lies that is followed after `depth` others."""
        it = self.table.field(field)
        return self.links[self.bases[it.base], it.offsets[:depth]]

    def cut(self, field: str, depth: int) -> Callable[[], None]:
        """Make a pointer on the way to a field null, as in a loading game; the result mends it."""
        place = self.link(field, depth)
        old = self.process.get(place, 8)
        self.process.put(place, bytes(8))
        return lambda: self.process.put(place, old)

    def move(self, field: str, depth: int) -> int:
        """Give the object behind a pointer another place with the same content, as a load does; its old place is
        overwritten with ones. Returns the distance."""
        place = self.link(field, depth)
        old = struct.unpack("<Q", self.process.get(place, 8))[0]
        new = self._free
        self._free += 0x100000
        pages = [page for page in self.process._pages if old // PAGE <= page < (old + 0x100000) // PAGE]
        for page in pages:
            self.process._pages[page + (new - old) // PAGE] = bytearray(self.process._pages[page])
            self.process._pages[page][:] = b"\xff" * PAGE
        self.process.pointer(place, new)
        for name, address in self.addresses.items():
            if old <= address < old + 0x100000:
                self.addresses[name] = address + new - old
        for key, address in self.links.items():
            if old <= address < old + 0x100000:
                self.links[key] = address + new - old
        return new - old


def lay_out(table: AddressTable, process: FakeProcess | None = None, **values: Value) -> LaidOut:
    """A game in the memory of a process of its own, with these values of its fields."""
    laid = LaidOut(table, process or FakeProcess())
    laid.set(**values)
    return laid


KNIGHT = {
    "PlayerHP": 454, "PlayerMaxHP": 454, "PlayerSP": 95, "PlayerMaxSP": 95, "PlayerA": 1.5,
    "PlayerX": (132.0, -68.0, 575.0), "PlayerAnimation": "Idle", "PlayerAnimationTime": 0.25,
    "PlayerAnimationMaxTime": 2.5, "PlayerFrostResistance": 70, "PlayerFrostResistanceMax": 140,
    "PlayerFrostEffect": 0.5, "CamQx": (0.0, -0.25, 1.0, 7.0, 133.0, -66.0, 571.0), "LockOn": 1,
    "LoSLockOnTime": 2.0, "Time": 1_000_000, "LastBonfire": 4002952, "WindowScreenWidth": 800,
    "WindowScreenHeight": 450,
    "IudexHP": 1037, "IudexMaxHP": 1037, "IudexPoseA": 0.5, "IudexPoseX": (141.0, -68.5, 592.0),
    "IudexAnimation": "Attack3001", "IudexAnimationTime": 0.5, "IudexAnimationMaxTime": 1.5, "IudexAttackID": 3001,
    "IudexAttackID2": -1, "IudexFlags": 0x60,
    "VordtHP": 1328, "VordtMaxHP": 1328, "VordtPoseA": 3.0, "VordtPoseX": (27.0, -25.0, 2.0),
    "VordtAnimation": "IdleBattle", "VordtAnimationTime": 0.75, "VordtAnimationMaxTime": 4.0, "VordtAttackID": -1,
    "VordtAttackID2": -1, "VordtFlags": 0x40, "IudexOtherMaxHP": 1037,
    "PlayerStats": struct.pack("<12i", 12, 10, 11, 13, 12, 9, 9, 7, 0, 0, 15, 9),
}  # fmt: skip
"""A knight of Dark Souls III who fights Iudex, and Vordt in the distance."""
