"""A Hugging Face hub on loopback, for the real client: it has the files of some models, and can break off or refuse."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_pipeline.text.encoder import bundled_folder
from memory_pipeline_tests.http_handler import LoopbackHandler

if TYPE_CHECKING:
    import torch


def tiny_model(folder: Path, prompts: Mapping[str, str] | None = None) -> Path:
    """A model of sentence-transformers with random weights, and the bundled one's words; 4 MB."""
    import torch  # takes a second, and most workers need it never
    from safetensors.torch import save_file

    (folder / "1_Pooling").mkdir(parents=True)
    bundled, size = bundled_folder(), 32
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt", "modules.json"):
        (folder / name).write_bytes((bundled / name).read_bytes())
    config = json.loads((bundled / "config.json").read_text())
    config |= {"hidden_size": size, "intermediate_size": size, "num_attention_heads": 2, "num_hidden_layers": 1}
    pooling = json.loads((bundled / "1_Pooling" / "config.json").read_text()) | {"word_embedding_dimension": size}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_bytes((bundled / "sentence_bert_config.json").read_bytes())
    if prompts is not None:
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    dice = torch.Generator().manual_seed(14)

    def weights(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=dice)

    def normed(name: str) -> dict[str, torch.Tensor]:
        return {f"{name}.weight": torch.ones(size), f"{name}.bias": torch.zeros(size)}

    layer = "encoder.layer.0"
    linear = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
    tensors = {f"embeddings.{name}_embeddings.weight": weights(count, size) for name, count in _EMBEDDINGS.items()}
    for name in (*linear, "intermediate.dense", "output.dense"):
        tensors |= {f"{layer}.{name}.weight": weights(size, size), f"{layer}.{name}.bias": weights(size)}
    tensors |= normed("embeddings.LayerNorm") | normed(f"{layer}.attention.output.LayerNorm")
    tensors |= normed(f"{layer}.output.LayerNorm")
    tensors |= {"pooler.dense.weight": weights(size, size), "pooler.dense.bias": weights(size)}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


_EMBEDDINGS = {"word": 30_522, "position": 512, "token_type": 2}


@dataclass
class Hub:
    """`models` are folders by name. `asked` are the methods and paths of all requests."""

    models: dict[str, Path]
    licence: str | None = "mit"
    gated: bool = False
    breaks_off: str | None = None
    """A file of which half is sent each time."""
    revision: str = "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a"
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def files(self, name: str) -> dict[str, bytes]:
        folder = self.models[name]
        return {f"{p.relative_to(folder)}": p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub, with its address in `url`."""

    class Handler(LoopbackHandler):
        def do_HEAD(self) -> None:
            self.answer(is_head=True)

        def do_GET(self) -> None:
            self.answer(is_head=False)

        def answer(self, *, is_head: bool) -> None:
            hub.asked.append(f"{self.command} {self.path}")
            path = self.path.split("?")[0]
            status, body, headers = self.found(path)
            is_cut = bool(hub.breaks_off) and path.endswith(f"/{hub.breaks_off}")
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", f"{len(body)}")
            self.end_headers()
            if not is_head:
                self.wfile.write(body[: len(body) // 2] if is_cut else body)
            self.close_connection = is_cut

        def found(self, path: str) -> tuple[int, bytes, dict[str, str]]:
            if hub.gated:
                return 403, b"{}", {"X-Error-Code": "GatedRepo"}
            for name in hub.models:
                files = hub.files(name)
                if path in (f"/api/models/{name}", f"/api/models/{name}/revision/main"):
                    return 200, json.dumps(self.described(name, files)).encode(), {}
                if path == f"/api/models/{name}/tree/{hub.revision}":
                    tree = [{"type": "file", "path": f, "size": len(b), "oid": _oid(b)} for f, b in files.items()]
                    return 200, json.dumps(tree).encode(), {}
                place = f"/{name}/resolve/{hub.revision}/"
                if path.startswith(place) and (content := files.get(path.removeprefix(place))) is not None:
                    return 200, content, {"ETag": f'"{_oid(content)}"', "X-Repo-Commit": hub.revision}
            return 404, b"{}", {"X-Error-Code": "RepoNotFound"}

        def described(self, name: str, files: Mapping[str, bytes]) -> dict[str, Any]:
            siblings = [{"rfilename": file, "size": len(content)} for file, content in files.items()]
            card = {"cardData": {"license": hub.licence}} if hub.licence else {}
            return {"id": name, "modelId": name, "sha": hub.revision, "siblings": siblings, "tags": [], **card}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _oid(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
