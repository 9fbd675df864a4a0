"""Runs Arm's Vela on int8 products: started by npu_vela.py with the Python that has `ethos-u-vela` and `tosa-tools`.

    PYTHON benchmarks/vela_run.py < requests.json > answers.json

requests: [{"accelerator", "system", "memory", "product": [m, n, k]}, ...]
answers:  [{"cycles", "array", "dram"}, ...]     Vela's estimates: all, of the array, of DRAM

A product is written as TOSA: a convolution of 1 x 1 over an image of one row and m columns, then a rescale to int8.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

Product = tuple[int, int, int]


@lru_cache
def tosa_of(product: Product) -> bytes:
    warnings.simplefilter("ignore", DeprecationWarning)
    import numpy as np
    import serializer.tosa_serializer as tosa  # type: ignore[import-not-found]
    from tosa import Op  # type: ignore[import-not-found]

    m, n, k = product
    int8, int32 = tosa.DType.INT8, tosa.DType.INT32
    graph = tosa.TosaSerializer("")
    weights = np.random.default_rng(0).integers(-127, 128, (n, 1, 1, k)).astype(np.int8)

    def constant(dtype: Any, values: Any) -> str:
        return str(graph.addConst(list(values.shape), dtype, values).name)

    inputs = graph.addPlaceholder([1, 1, m, k], int8, None)
    sums = graph.addIntermediate([1, 1, m, n], int32)
    outputs = graph.addOutput([1, 1, m, n], int8)
    zero = np.zeros(1, np.int8)
    convolution, rescale = tosa.TosaSerializerAttribute(), tosa.TosaSerializerAttribute()
    convolution.Conv2dAttribute([0, 0, 0, 0], [1, 1], [1, 1], False, int32)
    rescale.RescaleAttribute(True, 1, False, False, False)
    operands = [constant(int8, weights), constant(int32, np.zeros(n, np.int32)), constant(int8, zero), constant(int8, zero)]
    graph.addOperator(Op.Op.CONV2D, [inputs.name, *operands], [sums.name], convolution)
    scale = [constant(int32, np.array([1 << 30], np.int32)), constant(int8, np.array([40], np.int8))]
    zeros = [constant(int32, np.zeros(1, np.int32)), constant(int8, zero)]
    graph.addOperator(Op.Op.RESCALE, [sums.name, *scale, *zeros], [outputs.name], rescale)
    return bytes(graph.serialize())


def run(request: dict[str, Any]) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "product.tosa").write_bytes(tosa_of(tuple(request["product"])))
        options = ["--accelerator-config", request["accelerator"], "--config", "Arm/vela.ini", "--system-config", request["system"]]
        options += ["--memory-mode", request["memory"], "--output-format", "raw", "--output-dir", "out"]
        vela = Path(sys.executable).with_name("vela")
        done = subprocess.run([vela, "product.tosa", *options], cwd=folder, capture_output=True, text=True)
        found = list(Path(folder).glob("out/*summary*.csv"))
        if not found:
            sys.exit(f"Vela wrote no summary for {request}:\n{(done.stdout + done.stderr)[-2000:]}")
        with found[0].open() as file:
            row = next(csv.DictReader(file))
    return {name: int(float(row[f"cycles_{column}"])) for name, column in (("cycles", "total"), ("array", "npu"), ("dram", "dram_access"))}


if __name__ == "__main__":
    json.dump([run(request) for request in json.load(sys.stdin)], sys.stdout)
