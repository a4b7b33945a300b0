"""The measurement of threads and workers."""

import re

import torch

from forecause_bench import cores


def test_more_threads_give_the_same_result(capsys):
    before = torch.get_num_threads()
    try:
        for threads in ("1", "2"):
            cores.main(["--nodes", "4", "--max-lag", "2", "--rows", "400", "--threads", threads])
    finally:
        torch.set_num_threads(before)
    one, two = capsys.readouterr().out.splitlines()
    assert re.match(r"threads 1, workers 0: [\d.]+ s, \d+ edges, [0-9a-f]{12}$", one)
    assert one.split(" s, ")[1] == two.split(" s, ")[1]
