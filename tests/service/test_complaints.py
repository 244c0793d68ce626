"""What is said once."""

from heliograph.service.error_log import ErrorLog


def test_errors_that_come_by_turns_are_said_once_until_it_is_well() -> None:
    it = ErrorLog()
    assert [it.is_new("topics", text) for text in ("a", "b", "a", "b")] == [True, True, False, False]
    assert it.is_new("groups", "a")
    assert it.is_well("topics")
    assert not it.is_well("topics")
    assert it.is_new("topics", "a")
    assert not it.is_new("groups", "a")
