"""The memory of a lease."""

from heliograph.copy.budget import Budget, Chunk


def test_fetched_bytes_take_memory_until_the_last_batch_is_appended() -> None:
    budget = Budget(1000)
    chunk = Chunk(budget, 300, leader=1)
    budget.reserve(600)  # a fetch in flight may bring nothing
    assert budget.free == 1000
    chunk.acquire()
    chunk.acquire()
    assert budget.free == 700
    chunk.release()
    assert budget.free == 700
    chunk.release()
    assert budget.free == 1000
    Chunk(budget, 1500, leader=2).acquire()  # one batch may be larger than the buffer
    assert budget.free == 0
