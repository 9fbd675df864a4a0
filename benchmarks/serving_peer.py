"""llama.cpp's own HTTP server, from the xllamacpp wheel, until stdin ends: prints {"url": ...} when it answers. Started by serving.py."""

from __future__ import annotations

import argparse
import json
import sys

import xllamacpp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True, help="requests computed at once")
    parser.add_argument("--context", type=int, required=True, help="tokens of one request")
    options = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.n_parallel, params.n_ctx = options.slots, options.slots * options.context
    params.port, params.ui, params.verbosity, params.warmup = 0, False, 0, True
    server = xllamacpp.Server(params)
    print(json.dumps({"url": server.listening_address}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
