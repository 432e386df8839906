"""What a client is told whose request is not answered."""

from __future__ import annotations


class RefusedError(Exception):
    """A request that is not answered as it is. The text is one sentence for the client, without what was sent."""

    def __init__(self, status: int, sentence: str, *, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.retry_after = retry_after
