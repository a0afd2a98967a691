"""Looking words up in int8 weights of an ONNX model, and expanding only the rows that are found.

The models of `local` store weights as int8 beside a scale for each row, and expand them by nodes
of their graph: Cast, then Mul. ONNX Runtime does that once when it loads a model, and keeps the
floats: for the table of 30,000 words 47 MB, of which a text needs a few rows. With the lookup
before both nodes every vector is the same to the last bit, and the table stays int8.

A graph is edited as a protocol buffer, since the package `onnx` is not needed for anything else.
"""

from collections.abc import Iterable, Iterator

GRAPH, NODE = 7, 1
INPUT, OUTPUT, OPERATOR, ATTRIBUTE = 1, 2, 4, 5
"""Numbers of fields in ModelProto, GraphProto and NodeProto."""
VARINT, BYTES = 0, 2


def expand_after_lookup(model: bytes, table: str) -> bytes:
    """Return a model with the lookups in a table before its expansion.

    Args:
        table: the name of the expanded weights; `<table>_q` are the int8 ones, `<table>_f` those
            after the Cast, and `<table>_scale` the scales.
    """
    return b"".join(
        _field(GRAPH, b"".join(_nodes(value, table))) if number == GRAPH else raw
        for number, value, raw in _fields(model)
    )


def _nodes(graph: bytes, table: str) -> Iterator[bytes]:
    """Yield the fields of a graph; Cast and Mul of the table stand after each lookup."""
    to_float = b""
    for number, node, raw in _fields(graph):
        inputs, outputs = (_texts(node, one) if number == NODE else [] for one in (INPUT, OUTPUT))
        own = (
            b"".join(part for kind, _, part in _fields(node) if kind == ATTRIBUTE)
            if inputs
            else b""
        )
        if outputs == [f"{table}_f"]:
            to_float = own
        elif inputs[:1] == [table]:
            rows, scales, floats = (f"{outputs[0]}_{name}" for name in ("q", "scale", "f"))
            yield _node("Gather", [f"{table}_q", inputs[1]], rows, own)
            yield _node("Gather", [f"{table}_scale", inputs[1]], scales, own)
            yield _node("Cast", [rows], floats, to_float)
            yield _node("Mul", [floats, scales], outputs[0])
        elif outputs != [table]:
            yield raw


def _node(operator: str, inputs: Iterable[str], output: str, attributes: bytes = b"") -> bytes:
    fields = [*((INPUT, name) for name in inputs), (OUTPUT, output), (OPERATOR, operator)]
    return _field(NODE, b"".join(_field(kind, name.encode()) for kind, name in fields) + attributes)


def _texts(message: bytes, number: int) -> list[str]:
    return [value.decode() for kind, value, _ in _fields(message) if kind == number]


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the number, the content and all bytes of each field; numbers have no content."""
    at = 0
    while at < len(message):
        start = at
        key, at = _number(message, at)
        size, at = _number(message, at)
        kind = key & 7
        if kind not in (VARINT, BYTES):
            raise ValueError(f"unexpected field of type {kind}")
        content = message[at : at + size] if kind == BYTES else b""
        at += len(content)
        yield key >> 3, content, message[start:at]


def _field(number: int, content: bytes) -> bytes:
    return _written(number << 3 | BYTES) + _written(len(content)) + content


def _number(message: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return value, at


def _written(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])
