"""The claim: one text, however it is computed. Every way against the plain one, token for token, greedy and sampled.

    python benchmarks/exactness.py --json [--data DIR] [--prompts 24] [--tokens 48] [--model NAME] [--device NAME]

Reads the first prompts (`turns[0]` under 400 characters, by number) of DIR/prompts/*.jsonl; without --data, and where there is no
folder HYBRID_SHARED (default ../shared), the six of tests/data/prompts.jsonl. Ends with 1 when any way differs.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from hybrid.apps.exactness import every_way, first_difference
from hybrid.shared_protocol.model import load_model
from hybrid.shared_protocol.sampling import SamplingParams

MAX_CHARACTERS = 400
SHARED_DATA = Path(os.environ.get("HYBRID_SHARED", "../shared")) / "data"
OUR_DATA = Path(__file__).resolve().parents[1] / "tests" / "data"


def read_prompts(data: Path | None, number: int | None) -> list[str]:
    """The first `number` prompts; default: 24, or as many as there are of our own."""
    ours = data is None and not (SHARED_DATA / "prompts").is_dir()
    folder = OUR_DATA if ours else (data or SHARED_DATA) / "prompts"
    rows = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    texts = [row["turns"][0] for row in sorted(rows, key=lambda row: int(row["id"])) if len(row["turns"][0]) < MAX_CHARACTERS]
    number = number or (len(texts) if ours else 24)
    if len(texts) < number:
        raise SystemExit(f"{folder} has {len(texts)} prompts under {MAX_CHARACTERS} characters, {number} are asked for (--data DIR)")
    return texts[:number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object; else a line per way")
    parser.add_argument("--data", type=Path, help="a folder with prompts/*.jsonl")
    parser.add_argument("--prompts", type=int, help="how many; default: 24, or the six of our own")
    parser.add_argument("--tokens", type=int, default=48, help="of each answer; default: 48")
    parser.add_argument("--model", default="smollm2-135m", help="a model of the store, or a GGUF file")
    parser.add_argument("--device", help="the model that drafts, of the same vocabulary; default: the same model")
    options = parser.parse_args()
    model = load_model(options.model)
    device = load_model(options.device) if options.device else model
    if device.card.vocabulary != model.card.vocabulary:
        parser.error(f"{device.card.name} has another vocabulary than {model.card.name}: it cannot draft for it")
    prompts = [model.render_chat([{"role": "user", "content": text}]) for text in read_prompts(options.data, options.prompts)]
    settings = {
        "T 0": SamplingParams(temperature=0, max_tokens=options.tokens, seed=7),
        "T 0.8": SamplingParams(temperature=0.8, max_tokens=options.tokens, seed=7),
    }
    plain, results = {}, []
    for name, way in every_way(model, device):
        for label, params in settings.items():
            began = time.perf_counter()
            ids = way(prompts, params)
            difference = first_difference(plain.setdefault(label, ids), ids)
            result = {
                "way": name,
                "sampling": label,
                "equal": difference is None,
                "tokens": sum(map(len, ids)),
                "seconds": round(time.perf_counter() - began, 2),
            }
            if difference is not None:
                result["first_difference"] = {"prompt": difference.prompt, "token": difference.token}
            results.append(result)
            if not options.json:
                print(*result.values(), sep="\t", flush=True)
    if options.json:
        print(json.dumps({"model": model.card.name, "device": device.card.name, "prompts": len(prompts), "results": results}, indent=1))
    sys.exit(not all(result["equal"] for result in results))


if __name__ == "__main__":
    main()
