"""Which pages of the ledger are not needed any more. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from heliograph.model.pages import Page


def past_pages(pages: Sequence[Page], mirror_start: int, source_start: int, source_id: str) -> int:
    """How many of the first pages of a mirror partition are about records that neither log has any more.

    The last of those is kept: by it, positions in a gap after it are known not to be earlier ones.
    """
    last_of_source = max((at for at, page in enumerate(pages) if page.first.source_id == source_id), default=-1)
    past = 0
    for page, following in pairwise(pages):
        # An interval holds until another begins.
        end = max(page.last.end, following.first.target)
        is_gone_from_source = page.last.source_of(end) <= source_start
        if end > mirror_start or not (
            is_gone_from_source if page.first.source_id == source_id else past < last_of_source
        ):
            break
        past += 1
    return max(0, past - 1)
