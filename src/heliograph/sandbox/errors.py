"""The one exception the sandbox raises for things its user can put right.

The first line of the message says what failed; for a broker that did not start, the lines of its log follow.
It does not wrap programming errors: those stay what they are.
"""


class SandboxError(RuntimeError):
    """Something the sandbox needs is missing, or a broker did not do what was asked of it."""
