"""What is logged once."""

from heliograph.service.error_log import ErrorLog


def test_errors_that_alternate_are_logged_once_until_the_subject_recovers() -> None:
    errors = ErrorLog()
    assert [errors.is_new("topics", text) for text in ("a", "b", "a", "b")] == [True, True, False, False]
    assert errors.is_new("groups", "a")
    assert errors.recovered("topics")
    assert not errors.recovered("topics")
    assert errors.is_new("topics", "a")
    assert not errors.is_new("groups", "a")
