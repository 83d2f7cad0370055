"""The encoder and the decoder, compared with the daemon's own by the vectors that all clients share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanstatsd_opentelemetry import messages
from spanstatsd_opentelemetry.batches import Definitions, Key, Packer
from spanstatsd_opentelemetry.msgpack import MalformedError, pack, unpack

REPOSITORY = Path(__file__).parents[3]
VECTORS = json.loads((REPOSITORY / "internal/wire/testdata/vectors.json").read_text())
READERS = {
    messages.WELCOME: messages.read_welcome, messages.FEATURES: messages.read_features,
    messages.FLUSH: messages.read_flush, messages.BYE: messages.read_bye,
}  # fmt: skip


def vectors(*types: str) -> list[Any]:
    found = [vector for vector in VECTORS if vector.get("type") in types]
    assert found
    return [pytest.param(vector, id=vector["name"]) for vector in found]


def message_of(vector: Any) -> tuple[int, Any]:
    return messages.split(bytes.fromhex(vector["frame"])[4:])


@pytest.mark.parametrize("vector", vectors("welcome"))
def test_welcome(vector: Any) -> None:
    welcome = messages.read_welcome(message_of(vector)[1])
    want = vector["meaning"]
    assert welcome.daemon == want["daemon"]
    assert welcome.max_frame == want["max_frame"]
    assert welcome.max_batch == want["max_batch"]
    assert welcome.max_keys == want["max_keys"]
    assert welcome.settled == want.get("settled", False)
    assert welcome.interval == want.get("interval", 0)
    assert welcome.token == want.get("token", "")
    assert list(welcome.earlier) == want.get("earlier", [])
    assert welcome.features.stats == want["features"]["stats"]
    assert list(welcome.features.peer_tags) == want["features"]["peer_tags"]


@pytest.mark.parametrize("vector", vectors("features"))
def test_features(vector: Any) -> None:
    features, settled = messages.read_features(message_of(vector)[1])
    want = vector["meaning"]
    assert settled == want.get("settled", 0)
    assert features.stats == want["stats"]
    assert list(features.span_kinds) == want["span_kinds"]
    assert features.obfuscation_version == want["obfuscation_version"]


@pytest.mark.parametrize("vector", vectors("flush", "bye"))
def test_other_responses(vector: Any) -> None:
    kind, body = message_of(vector)
    response = READERS[kind](body)
    for name, want in vector["meaning"].items():
        assert getattr(response, name) == want


@pytest.mark.parametrize("name", [vector["name"] for vector in VECTORS if vector.get("malformed")])
def test_malformed(name: str) -> None:
    """A message that the daemon would not send is rejected, or is of a type that clients do not read."""
    vector = next(vector for vector in VECTORS if vector["name"] == name)
    try:
        kind, body = message_of(vector)
    except MalformedError:
        return
    if kind in READERS:
        with pytest.raises(MalformedError):
            READERS[kind](body)


@pytest.mark.parametrize("vector", [v for v in vectors("hello") if v.values[0].get("canonical")])
def test_hello(vector: Any) -> None:
    meaning = vector["meaning"]
    ours = unpack(messages.hello(meaning["client"], meaning["origin"], meaning.get("earlier", ""))[4:])
    theirs = unpack(bytes.fromhex(vector["frame"])[4:])
    assert ours[1]["origin"] == theirs[1]["origin"]
    assert ours[1].get("earlier") == theirs[1].get("earlier")


def test_lost_flush_and_bye() -> None:
    by_name = {vector["name"]: vector["frame"] for vector in VECTORS}
    assert messages.lost({"buffer_full": 1200, "closed": 1 << 40}).hex() == by_name["lost"]
    assert messages.flush(42).hex() == by_name["flush_request"]
    assert messages.bye("exit").hex() == by_name["bye"]


@pytest.mark.parametrize("vector", [v for v in vectors("spans") if v.values[0].get("canonical")])
def test_keys(vector: Any) -> None:
    """Keys are the same bytes as the daemon's, because it finds them by their bytes."""
    encoded = [row[0] for row in unpack(bytes.fromhex(vector["frame"])[4:])[1]]
    for key, snapshot in zip(encoded, vector["meaning"]["snapshots"]):
        if "key" in snapshot and len(key) < 6000:
            labels = {"kind" if name == "span_kind" else name: value for name, value in snapshot["key"].items()}
            assert Key(labels).encoded == key


def test_unknown_label() -> None:
    with pytest.raises(ValueError, match="resorce is not a label"):
        Key({"resorce": "GET /"})


def test_long_keys_are_cut() -> None:
    key = Key({"service": "shop", "resource": "r" * 100_000, "peer_tags": [f"a{i:03}:{'x' * 900}" for i in range(500)]})
    assert len(key.encoded) < 20 << 10
    labels = unpack(key.encoded)
    assert labels[2] == "r" * 5004
    assert len(labels[7]) == 64


def test_batches_of_any_spans() -> None:
    """Each batch can be read after the definitions that it needs, whatever the numbers and lengths of keys are."""
    packer, definitions = Packer(), Definitions()
    spans = []
    for i in range(3000):
        name = f"GET /{i % 1500}" + "x" * (8000 if i % 100 == 0 else 0)  # some keys are sent whole
        spans.append(
            (Key({"service": "shop", "operation": "http.request", "resource": name}), i * 10**7, 10**18 + i, i % 4)
        )
    spans.append((spans[0][0], -5, -7, 2))
    spans.append((spans[0][0], 1 << 70, 1 << 70, 2))
    spans.append((spans[1][0], None, 3.5, 2))  # by a careless application
    read = []
    for batch in packer.pack(spans):
        keys: dict[int, bytes] = {}
        missing = definitions.missing(batch)
        if missing:
            assert len(missing) < 1 << 16
            defined = dict(unpack(missing[4:])[1])
            keys.update(defined)
        _, rows = unpack(batch.frame[4:])
        assert len(batch.frame) < 1 << 16 and len(rows) == batch.spans <= 256
        table = dict(enumerate(batch.table.keys[: batch.keys]))
        assert keys.items() <= table.items()
        read += [(table[row[0]] if isinstance(row[0], int) else row[0], *row[1:]) for row in rows]
    want = [(key.encoded, duration, end, flags) for key, duration, end, flags in spans[:3000]]
    assert read[:3000] == want
    assert [row[1:] for row in read[3000:]] == [(0, 0, 2), ((1 << 64) - 1, (1 << 63) - 1, 2), (0, 3, 2)]


@pytest.mark.parametrize("value", [0, 127, 128, 1 << 40, -1, -33, -(1 << 40), 1.5, "x" * 300, b"y" * 70_000, [1] * 20])
def test_msgpack_round_trip(value: Any) -> None:
    assert unpack(pack(value)) == value
