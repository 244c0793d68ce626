"""What a sample of the machine says: whose time it is, and what that process was doing. Pure functions.

`perf script` prints a line per sample: the thread's name, the process, the time, and the address with its function and
library. `KERNEL`, `SHARED` and the tables after them name the functions and libraries of each kind; the first line that
fits counts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

FIELDS = "comm,pid,time,ip,sym,dso"  # of `perf script`, as `parse` reads them

_IDLE_PROCESS = 0
_TOP = 12
_LINE = re.compile(r"\s*(?P<thread>.*?)\s+(?P<pid>-?\d+)\s+(?P<time>\d+\.\d+):\s+[0-9a-f]+ (?P<rest>.*)")
_FUNCTION = re.compile(r"(?P<function>.*) \((?P<library>[^()]*(?: \(deleted\))?)\)\s*")


@dataclass(frozen=True)
class Sample:
    """What ran on one core at one moment; `time` is that of time.monotonic()."""

    thread: str
    pid: int
    time: float
    function: str
    library: str


class Owner(StrEnum):
    """Whose time it is."""

    SOURCE = "source broker"
    TARGET = "target broker"
    MIRROR = "the process that copies"  # a lease of Heliograph, or all of franz-go
    DRIVER = "driver"
    SPARK = "Spark's JVM"
    BENCHMARK = "benchmark"
    OTHERS = "others"
    IDLE = "idle"


class Program(Enum):
    """How a process was made: what code without a name is, depends on it."""

    PYTHON = auto()
    JAVA = auto()
    GO = auto()


class Kind(StrEnum):
    """What a process was doing."""

    NETWORK = "kernel: network"
    FILES = "kernel: page cache"
    PAGES = "kernel: memory"  # pages are given to a process, or taken back
    KERNEL = "kernel: others"
    CHECKSUM = "checksums"
    JOINING = "joining"
    PYTHON = "Python"
    LOOP = "event loop"
    MEMORY = "memory moves"
    COMPRESSION = "compression"
    TLS = "TLS"
    JAVA = "Java, compiled"
    STUBS = "Java's routines"
    INTERPRETER = "Java, interpreted"
    COMPILER = "Java's compilers"
    JVM = "JVM, others"
    GO = "Go, compiled"
    COLLECTOR = "garbage collection"
    OTHERS = "others"


@dataclass(frozen=True)
class Process:
    owner: Owner
    program: Program


@dataclass(frozen=True)
class Rule:
    """A kind, and regular expressions that are looked for in a sample. An empty one fits everything."""

    kind: Kind
    function: str = ""
    library: str = ""
    thread: str = ""

    def fits(self, sample: Sample) -> bool:
        return all(
            re.search(pattern, text)
            for pattern, text in (
                (self.function, sample.function),
                (self.library, sample.library),
                (self.thread, sample.thread),
            )
            if pattern
        )


_IN_KERNEL = r"^\[(?!unknown|anon|heap|stack|vdso|vsyscall)"  # [kernel.kallsyms], or a module
_WITHOUT_LIBRARY = r"perf-\d+\.map|//anon|^\[unknown\]|^\[anon|^\[heap\]"  # code that was compiled while it ran

KERNEL = (
    Rule(
        Kind.FILES,
        r"copy_folio|filemap|shmem|page_cache|pagecache|xas_|iomap|generic_perform_write|balance_dirty|fault_in_iov"
        r"|vfs_write|ext4",
        _IN_KERNEL,
    ),
    Rule(
        Kind.NETWORK,
        r"tcp|skb|sock|inet|^_*ip_|ipv4|netif|net_rx|dev_queue|loopback|__dev_|nf_|copy_to_iter|copy_from_iter"
        r"|sendmsg|recvmsg|splice|csum|page_frag|softirq|epoll|ep_poll|ep_send",
        _IN_KERNEL,
    ),
    Rule(
        Kind.PAGES,
        r"fault|clear_page|folio|alloc_pages|freelist|rmqueue|free_unref|lru_|lruvec|memcg|mem_cgroup|mmap|unmap|zap_",
        _IN_KERNEL,
    ),
    Rule(Kind.KERNEL, library=_IN_KERNEL),
)
SHARED = (
    Rule(Kind.CHECKSUM, r"(?i)crc32"),
    Rule(Kind.CHECKSUM, library=r"(?i)crc32"),
    Rule(Kind.COMPRESSION, r"(?i)lz4|zstd|snappy|^deflate|^inflate"),
    Rule(Kind.COMPRESSION, library=r"(?i)lz4|zstd|snappy|cramjam|libz\."),
    Rule(Kind.TLS, r"aes_|aesni|ghash|gcm_|chacha|crypto/|com\.sun\.crypto|security\.ssl|net\.ssl"),
    Rule(Kind.TLS, library=r"libcrypto|libssl|_ssl\.|_hashlib"),
    Rule(Kind.MEMORY, r"^_*(mem(move|cpy|set)|runtime\.mem(move|clr))"),
)
PYTHON = (
    Rule(Kind.JOINING, library=_WITHOUT_LIBRARY),
    Rule(Kind.LOOP, library=r"uvloop|libuv"),
    Rule(Kind.PYTHON, library=r"libpython|/python3?(\.\d+)?$|site-packages|lib-dynload"),
)
JAVA_THREADS = (
    Rule(Kind.COLLECTOR, thread=r"^G1 |^GC Thread|^VM Thread"),
    Rule(Kind.COMPILER, thread=r"^C[12] Compiler"),
)
JAVA = (
    Rule(Kind.INTERPRETER, r"^Interpreter"),
    Rule(Kind.STUBS, r"^StubRoutines"),
    Rule(Kind.JAVA, library=_WITHOUT_LIBRARY),
    Rule(Kind.JVM, library=r"libjvm|libjava|libnio|libnet"),
)
GO = (
    Rule(
        Kind.COLLECTOR, r"^runtime\.(gc|bgsweep|sweep|scan|greyobject|mark|malloc|newobject|growslice|\(\*(m|gc|span))"
    ),
    Rule(Kind.GO, library=r"franzgo"),
)
RULES: Mapping[Program, Sequence[Rule]] = {
    Program.PYTHON: (*KERNEL, *SHARED, *PYTHON),
    Program.JAVA: (*KERNEL, *JAVA_THREADS, *SHARED, *JAVA),
    Program.GO: (*KERNEL, *SHARED, *GO),
}


def parse(lines: Iterable[str]) -> Iterator[Sample]:
    """The samples of `perf script -F FIELDS`; lines of another form are left out."""
    for line in lines:
        if match := _LINE.fullmatch(line.rstrip("\n")):
            place = _FUNCTION.fullmatch(match["rest"])
            function, library = (place["function"], place["library"]) if place else (match["rest"], "[unknown]")
            yield Sample(match["thread"], int(match["pid"]), float(match["time"]), function, library)


def owner_of(sample: Sample, processes: Mapping[int, Process]) -> Owner:
    if sample.pid == _IDLE_PROCESS:
        return Owner.IDLE
    process = processes.get(sample.pid)
    return process.owner if process is not None else Owner.OTHERS


def kind_of(sample: Sample, program: Program) -> Kind:
    return next((rule.kind for rule in RULES[program] if rule.fits(sample)), Kind.OTHERS)


@dataclass(frozen=True)
class Summary:
    """Numbers of samples: by owner, by owner and kind, and the functions that each owner spends most of its time in."""

    owners: dict[str, int]
    kinds: dict[str, dict[str, int]]
    functions: dict[str, dict[str, int]]


def summarize(samples: Iterable[Sample], processes: Mapping[int, Process]) -> Summary:
    owners: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}
    functions: dict[str, Counter[str]] = {}
    for sample in samples:
        owner = owner_of(sample, processes)
        owners[owner.value] += 1
        if sample.pid in processes:
            kind = kind_of(sample, processes[sample.pid].program)
            kinds.setdefault(owner.value, Counter())[kind.value] += 1
            name = f"{kind}: {sample.function} ({sample.library.rpartition('/')[2]})"
            functions.setdefault(owner.value, Counter())[name] += 1
    return Summary(
        dict(owners),
        {owner: dict(counts.most_common()) for owner, counts in kinds.items()},
        {owner: dict(counts.most_common(_TOP)) for owner, counts in functions.items()},
    )
