"""The only exception of the sandbox, for problems that its user can solve.

The first line of the message says what failed; for a broker that did not start, lines of its log follow. Programming
errors are not wrapped.
"""


class SandboxError(RuntimeError):
    """Something that the sandbox needs is missing, or a broker failed."""
