"""Write trained weights as the ONNX file that Pegboard's embedded encoder runs.

Matrices are multiplied in 8-bit integers: a matrix has a scale for each column, the tokens that it
is multiplied with each have their own, so a vector depends on no other text of its batch.
Everything else is in float32, by ONNX Runtime's fused operators.
"""

import argparse
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

LAYERS, HEADS, WIDTH = 6, 12, 384
LEVELS = 127
"""Of an 8-bit value, on either side of zero."""
FUSED = "com.microsoft"

Weights = dict[str, NDArray[np.float32]]


def main() -> None:
    """Write the file, and print its sha256."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--weights", type=Path, nargs="+", required=True, help="safetensors; their mean is taken")
    add("--out", type=Path, required=True)
    options = parser.parse_args()
    trained = [load_file(path) for path in options.weights]
    mean = {name: sum(own[name] for own in trained) / len(trained) for name in trained[0]}
    onnx.save(Graph(mean).model(), options.out)
    print(hashlib.sha256(options.out.read_bytes()).hexdigest(), options.out)


class Graph:
    """The graph of a BERT encoder, from its weights by their names in transformers."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.tensor("axis", np.array([1], np.int64))
        self.tensor("start", np.array([0], np.int64))
        self.tensor("flat", np.array([-1, WIDTH], np.int64))
        self.tensor("vector", np.array([-1], np.int64))
        self.tensor("one", np.float32(1))
        self.tensor("zero_point", np.uint8(LEVELS))
        self.tensor("per_level", np.float32(1 / LEVELS))
        self.tensor("tiny", np.float32(1e-12))

    def model(self) -> onnx.ModelProto:
        """The whole model: ids and mask, shape (batch, tokens), to hidden states, (batch, tokens,
        width).
        """
        states = self.embeddings()
        shape = self.node("Shape", states)
        mask = self.node("Cast", "attention_mask", to=TensorProto.INT32)
        states = self.node("Reshape", states, "flat")
        for layer in range(LAYERS):
            states = self.layer(f"encoder.layer.{layer}", states, shape, mask)
        self.nodes.append(helper.make_node("Reshape", [states, shape], ["last_hidden_state"]))
        names = ("input_ids", "attention_mask", "token_type_ids")
        ids, size = TensorProto.INT64, ["batch", "tokens"]
        inputs = [helper.make_tensor_value_info(name, ids, size) for name in names]
        output = helper.make_tensor_value_info(
            "last_hidden_state", TensorProto.FLOAT, [*size, WIDTH]
        )
        graph = helper.make_graph(self.nodes, "encoder", inputs, [output], self.tensors)
        versions = [helper.make_opsetid("", 18), helper.make_opsetid(FUSED, 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=8)

    def embeddings(self) -> str:
        """Words, positions and the type of the first text; a word has its own scale."""
        words = self.weights["embeddings.word_embeddings.weight"]
        scale = np.abs(words).max(axis=1, keepdims=True) / LEVELS
        self.tensor("words", np.rint(words / scale).astype(np.int8))
        self.tensor("words.scale", scale)
        chosen = self.node("Gather", "words", "input_ids")
        chosen = self.node("Cast", chosen, to=TensorProto.FLOAT)
        chosen = self.node("Mul", chosen, self.node("Gather", "words.scale", "input_ids"))
        types = self.weights["embeddings.token_type_embeddings.weight"]
        positions = self.weights["embeddings.position_embeddings.weight"]
        self.tensor("positions", positions + types[0])
        length = self.node("Shape", "input_ids", start=1, end=2)
        places = self.node("Slice", "positions", "start", length)
        return self.normed(self.node("Add", chosen, places), "embeddings.LayerNorm")

    def layer(self, name: str, states: str, shape: str, mask: str) -> str:
        """Attention and the two dense layers, each added to what went in and normalised."""
        own = f"{name}.attention.self"
        parts = [f"{own}.{part}" for part in ("query", "key", "value")]
        levels = self.levels(states)
        projected = [self.node("Reshape", self.product(*levels, part), shape) for part in parts]
        bias = np.concatenate([self.weights[f"{part}.bias"] for part in parts])
        attended = self.node(
            "MultiHeadAttention",
            *projected,
            self.tensor(f"{own}.bias", bias),
            mask,
            domain=FUSED,
            num_heads=HEADS,
        )
        attended = self.node("Reshape", attended, "flat")
        states = self.added(attended, states, f"{name}.attention.output")
        inner = f"{name}.intermediate.dense"
        wide = self.product(*self.levels(states), inner)
        wide = self.node("BiasGelu", wide, self.bias(inner), domain=FUSED)
        return self.added(wide, states, f"{name}.output")

    def added(self, states: str, before: str, name: str) -> str:
        """A dense layer, added to what was before, normalised."""
        dense = self.product(*self.levels(states), f"{name}.dense")
        dense = self.node("Add", dense, self.bias(f"{name}.dense"))
        return self.normed(self.node("Add", dense, before), f"{name}.LayerNorm")

    def levels(self, states: str) -> tuple[str, str]:
        """Each row in 8 bits, and its scale."""
        largest = self.node("ReduceMax", self.node("Abs", states), "axis", keepdims=1)
        scale = self.node("Add", self.node("Mul", largest, "per_level"), "tiny")
        scales = self.node("Reshape", scale, "vector")
        zeros = self.node("Expand", "zero_point", self.node("Shape", scales))
        return self.node("QuantizeLinear", states, scales, zeros, axis=0), scale

    def product(self, levels: str, scale: str, name: str) -> str:
        """Rows times a matrix, without its bias."""
        matrix = self.weights[f"{name}.weight"].T
        steps = np.abs(matrix).max(axis=0) / LEVELS
        values = self.tensor(f"{name}.levels", np.rint(matrix / steps).astype(np.int8))
        steps = self.tensor(f"{name}.scale", steps)
        result = self.node(
            "MatMulIntegerToFloat", levels, values, "one", steps, "zero_point", domain=FUSED
        )
        return self.node("Mul", result, scale)

    def normed(self, states: str, name: str) -> str:
        """A layer norm with its gain and bias; the fused one with an addition is nine times as
        slow.
        """
        own = [self.tensor(each, self.weights[each]) for each in (f"{name}.weight", f"{name}.bias")]
        return self.node("LayerNormalization", states, *own, axis=-1, epsilon=1e-12)

    def bias(self, name: str) -> str:
        """Of a dense layer."""
        return self.tensor(f"{name}.bias", self.weights[f"{name}.bias"])

    def tensor(self, name: str, values: Any) -> str:
        """Add a constant."""
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator, and return the name of its result."""
        name = f"{operator}.{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(operator, list(inputs), [name], name, domain=domain, **attributes)
        )
        return name


if __name__ == "__main__":
    main()
