"""Which lease copies what."""

from hypothesis import given
from hypothesis import strategies as st

from heliograph.model.partitions import MirrorPartition
from heliograph.service.assignment import Assignment, assign


def _partitions(count: int) -> list[MirrorPartition]:
    return [MirrorPartition("t", "A.t", number) for number in range(count)]


_changes = st.lists(
    st.tuples(st.dictionaries(st.integers(0, 40), st.floats(0, 1e6)), st.integers(1, 6)), min_size=1, max_size=5
)


@given(_changes)
def test_every_partition_is_in_exactly_one_lease_and_no_lease_could_give_one_away(
    changes: list[tuple[dict[int, float], int]],
) -> None:
    before: Assignment = ()
    for loads, most in changes:
        load = {MirrorPartition("t", "A.t", number): value for number, value in loads.items()}
        before = assign(load, before, most, load)
        assert sorted(partition for lease in before for partition in lease) == sorted(load)
        assert len(before) == min(most, len(load))
        if not before:
            continue
        sums = [sum(1 + load[partition] for partition in lease) for lease in before]
        fullest = before[sums.index(max(sums))]
        even = max(sums) <= max(1.251 * sum(sums) / len(sums), min(sums) + 1.001)
        assert even or all(1 + load[partition] >= (max(sums) - min(sums)) * 0.999 for partition in fullest)


def test_without_load_leases_are_even_in_number() -> None:
    for count in range(1, 60):
        sizes = [len(lease) for lease in assign(_partitions(count), (), 7)]
        assert max(sizes) - min(sizes) <= 1


def test_a_new_partition_moves_no_other() -> None:
    before = assign(_partitions(10), (), 4)
    after = assign(_partitions(11), before, 4)
    moved = sum(set(old) - set(new) != set() for old, new in zip(before, after, strict=True))
    assert moved == 0


def test_a_busy_partition_gets_a_lease_for_itself_and_the_others_share() -> None:
    partitions = _partitions(9)
    before = assign(partitions, (), 3)
    load = dict.fromkeys(partitions, 10.0) | {partitions[0]: 1000.0}
    after = assign(partitions, before, 3, load)
    (busy,) = [lease for lease in after if partitions[0] in lease]
    assert len(busy) == 1
    assert sorted(len(lease) for lease in after) == [1, 4, 4]


def test_a_small_change_of_load_moves_nothing() -> None:
    partitions = _partitions(12)
    load = {partition: 100.0 + number for number, partition in enumerate(partitions)}
    before = assign(partitions, (), 3, load)
    shaken = {partition: value * (0.9 if number % 2 else 1.1) for number, (partition, value) in enumerate(load.items())}
    assert assign(partitions, before, 3, shaken) == before
