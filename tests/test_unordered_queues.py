"""Queues without order: operations of several kernels give what they give on a queue in order."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import scipy.sparse

import clsparse_py as sp


def test_ranks_and_blocks_on_a_queue_without_order(queue: cl.CommandQueue) -> None:
    order = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    free = cl.CommandQueue(queue.context, queue.device, properties=order)
    S = scipy.sparse.random_array((400, 400), density=0.02, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
    ranks = sp.graph.pagerank(sp.csr_array(S, queue=queue))
    blocks = sp.bsr_array(S.tobsr((2, 2)), queue=free)
    A = sp.csr_array(S, queue=free)
    for _ in range(20):
        np.testing.assert_allclose(sp.graph.pagerank(A), ranks, rtol=1e-4)
        assert abs(blocks.tocsr().get() - S).max() == 0
