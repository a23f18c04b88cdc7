"""The bundled MiniLM weights as the ONNX model that chromadb and FastEmbed would download.

python -m benchmarks.peers.minilm FOLDER     (with the package `onnx` on the path)
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from memory_pipeline.text.encoder import bundled_folder

FILES = ("config.json", "special_tokens_map.json", "tokenizer_config.json", "tokenizer.json", "vocab.txt")
TEXTS = ("hello world", "We moved the session cache to Redis and gave every key a TTL of one hour.", "¿Qué?")
ALIKE = 0.9999
"""Least cosine to the vectors of sentence-transformers; the exporter's own default failed this check at torch 2.13."""

EMBED = """
import json, sys
import numpy, onnxruntime, tokenizers
folder, texts = sys.argv[1], json.loads(sys.argv[2])
tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
read = tokenizer.encode_batch(texts)
session = onnxruntime.InferenceSession(folder + "/model.onnx")
ids, mask = (numpy.array([getattr(r, name) for r in read]) for name in ("ids", "attention_mask"))
hidden = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)})[0]
vectors = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
print(json.dumps((vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)).tolist()))
"""


def onnx_folder(folder: Path) -> Path:
    """A folder with model.onnx and its tokenizer, made from the bundled weights if it is not there.

    Raises CalledProcessError.
    """
    model = folder / "minilm"
    if (model / "model.onnx").exists():
        return model
    packages = folder / "onnx-packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", f"{packages}"]
    subprocess.run([*pip, "onnx", "onnxscript", "onnx-ir", "ml-dtypes", "protobuf", "typing-extensions"], check=True)
    env = os.environ | {"PYTHONPATH": f"{packages}", "HF_HUB_OFFLINE": "1"}
    subprocess.run([sys.executable, "-m", "benchmarks.peers.minilm", f"{model}"], check=True, env=env)
    return model


def check(python: Path, model: Path) -> None:
    """See that the exported model embeds like the bundled one; `python` has onnxruntime.

    Raises ValueError if it does not.
    """
    from sentence_transformers import SentenceTransformer

    expected = SentenceTransformer(f"{bundled_folder()}", device="cpu").encode(list(TEXTS), normalize_embeddings=True)
    command = [f"{python}", "-c", EMBED, f"{model}", json.dumps(TEXTS)]
    got = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    least = float(np.min(np.sum(np.asarray(expected) * np.asarray(got), axis=1)))
    if least < ALIKE:
        raise ValueError(f"{model}/model.onnx has a cosine of {least:.4f} to the bundled model, less than {ALIKE}.")


def export(model: Path) -> None:
    """Write the model and what belongs to it into a new folder."""
    import torch
    from transformers import AutoModel

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = AutoModel.from_pretrained(bundled_folder(), attn_implementation="eager")

        def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
            # a mask of four axes is taken as it is; one of two is simplified away while it is traced
            hidden = ((1.0 - mask.float()) * -1e4)[:, None, None, :]
            states = self.bert(input_ids=ids, attention_mask=hidden, token_type_ids=types).last_hidden_state
            assert isinstance(states, torch.Tensor)
            return states

    model.mkdir(parents=True)
    inputs, output = ["input_ids", "attention_mask", "token_type_ids"], "last_hidden_state"
    example = torch.ones(2, 8, dtype=torch.long)
    torch.onnx.export(
        Hidden().eval(),
        (example, example, torch.zeros_like(example)),
        f"{model}/model.part",
        input_names=inputs,
        output_names=[output],
        dynamic_axes={name: {0: "batch", 1: "tokens"} for name in (*inputs, output)},
        dynamo=False,  # the newer exporter of torch 2.13 gives a model that computes something else
    )
    for name in FILES:
        shutil.copy(bundled_folder() / name, model / name)
    (model / "model.part").rename(model / "model.onnx")


if __name__ == "__main__":
    export(Path(sys.argv[1]))
