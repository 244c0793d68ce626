"""Which lease copies what."""

from hypothesis import given
from hypothesis import strategies as st

from heliograph.copy.work import MirrorPartition
from heliograph.service.assignment import Assignment, assign


def _partitions(count: int) -> list[MirrorPartition]:
    return [MirrorPartition("t", "A.t", number) for number in range(count)]


_changes = st.lists(st.tuples(st.sets(st.integers(0, 40)), st.integers(1, 6)), min_size=1, max_size=5)


@given(_changes)
def test_every_partition_is_in_exactly_one_lease_and_leases_are_even(changes: list[tuple[set[int], int]]) -> None:
    before: Assignment = ()
    for numbers, most in changes:
        wanted = [MirrorPartition("t", "A.t", number) for number in numbers]
        before = assign(wanted, before, most)
        assert sorted(one for lease in before for one in lease) == sorted(wanted)
        sizes = [len(lease) for lease in before]
        assert len(sizes) == min(most, len(wanted))
        assert not sizes or max(sizes) <= -(-len(wanted) // len(sizes))


def test_a_new_partition_moves_no_other() -> None:
    before = assign(_partitions(10), (), 4)
    after = assign(_partitions(11), before, 4)
    moved = sum(set(old) - set(new) != set() for old, new in zip(before, after, strict=True))
    assert moved == 0
