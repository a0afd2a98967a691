"""Write trained weights as the ONNX file that Pegboard's embedded encoder runs.

The graph is the stock encoder's, so the runtime, the speed and the size are too: matrices are int8
with one scale a column (a row of the embeddings), and expanded before they are multiplied. Which
matrix of the graph is which of the model is found by comparing with the stock weights.
"""

import argparse
import hashlib
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors.numpy import load_file


def main() -> None:
    """Write the file, and print its sha256."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--graph", type=Path, required=True, help="the stock encoder's model.onnx")
    add("--stock", type=Path, required=True, help="the stock weights, safetensors")
    add("--weights", type=Path, required=True, help="the trained weights, safetensors")
    add("--out", type=Path, required=True)
    options = parser.parse_args()
    model = onnx.load(options.graph)
    replace_weights(model, load_file(options.stock), load_file(options.weights))
    options.out.write_bytes(model.SerializeToString())
    print(hashlib.sha256(options.out.read_bytes()).hexdigest(), options.out)


def replace_weights(
    model: onnx.ModelProto,
    stock: dict[str, NDArray[np.float32]],
    weights: dict[str, NDArray[np.float32]],
) -> None:
    """Put the trained weights into the graph; raises ValueError if one has no place there."""
    tensors = {each.name: each for each in model.graph.initializer}
    left = {name for name in weights if not name.startswith("pooler")}
    for name, tensor in tensors.items():
        if name.endswith("_q"):
            scale = tensors[f"{name[:-2]}_scale"]
            old = numpy_helper.to_array(tensor) * numpy_helper.to_array(scale)
            own, turned = _matching(old, stock)
            new = weights[own].T if turned else weights[own]
            axis = tuple(
                n for n, size in enumerate(numpy_helper.to_array(scale).shape) if size == 1
            )
            steps = np.abs(new).max(axis=axis or None, keepdims=bool(axis)) / 127
            values = np.clip(np.rint(new / steps), -127, 127).astype(np.int8)
            tensor.CopyFrom(numpy_helper.from_array(values, name))
            scale.CopyFrom(numpy_helper.from_array(steps.astype(np.float32), scale.name))
            left.discard(own)
        elif (own := name.removeprefix("inner.")) in weights:
            tensor.CopyFrom(numpy_helper.from_array(weights[own].astype(np.float32), name))
            left.discard(own)
    if left:
        raise ValueError(f"These weights have no place in the graph: {sorted(left)}")


def _matching(old: NDArray[np.float32], stock: dict[str, NDArray[np.float32]]) -> tuple[str, bool]:
    for name, each in stock.items():
        for turned in (False, True):
            matrix = each.T if turned else each
            if matrix.shape == old.shape and np.abs(matrix - old).mean() < 0.1 * np.abs(old).mean():
                return name, turned
    raise ValueError(f"No stock weight matches a matrix of shape {old.shape}.")


if __name__ == "__main__":
    main()
