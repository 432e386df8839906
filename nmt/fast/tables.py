"""Tables of tokens: the product W E y depends on the token y alone, so a look-up replaces a matrix product."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from nmt.model.embedding import TokenEmbedding


class TokenTable(nn.Module):
    """W g E y + b of every token y, computed when the token is first read. Threads may share the table."""

    def __init__(self, embedding: TokenEmbedding, linear: nn.Linear) -> None:
        super().__init__()
        self.embedding, self.linear = embedding, linear
        self.out_features = linear.out_features
        self.table: Tensor | None = None
        self.is_known = torch.zeros(embedding.num_embeddings, dtype=torch.bool)
        self.filling = threading.Lock()

    def forward(self, ids: Int[Tensor, "... 1"]) -> Float[Tensor, "... G"]:
        ids = ids.squeeze(-1)
        return functional.embedding(ids, self.rows_for(ids))

    def rows_for(self, ids: Int[Tensor, "*ids"]) -> Float[Tensor, "V G"]:
        """The table, with the rows of these tokens filled."""
        if self.table is None or not self.is_known[ids].all():
            with self.filling:
                return self._fill(torch.unique(ids[~self.is_known[ids]]))
        return self.table

    def _fill(self, ids: Int[Tensor, " n"]) -> Float[Tensor, "V G"]:
        products: Tensor = self.linear(self.embedding(ids))
        table = self.table
        if table is None:
            with torch.inference_mode(mode=False):  # else no row could be added outside of it
                table = torch.empty(len(self.is_known), self.out_features, dtype=products.dtype, device=products.device)
        table[ids] = products
        self.table = table
        self.is_known[ids] = True  # last, so that no thread reads a row before it is there
        return table

    if TYPE_CHECKING:
        __call__ = forward


class TokenIds(nn.Module):
    """Replaces an embedding that only tables read: passes the ids on."""

    def forward(self, ids: Int[Tensor, "*ids"]) -> Int[Tensor, "*ids 1"]:
        return ids.unsqueeze(-1)

    if TYPE_CHECKING:
        __call__ = forward
