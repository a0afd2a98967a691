"""Fine-tunes MiniLM for requests and tools, on the processor.

A batch holds whole groups of tools that lie near each other, each tool with a few of its requests,
so a request is told apart from the tools that it is most easily confused with; and a tool's longer
text is encoded once for several requests. The loss is InfoNCE in both directions; tools with the
same text are no negatives of each other's requests. Word embeddings stay as they are, unless it is
asked for otherwise; the weights that are saved are a running average of the last steps.
"""

import argparse
import math
import random
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import AutoTokenizer, BertModel

from benchmarks.encoder.batches import Batch, batches, document
from benchmarks.encoder.examples import Example, training_groups

DOCUMENT_TOKENS, REQUEST_TOKENS = 80, 40
SCALE = 20.0
AVERAGE = 0.998
SIZE, EACH, RATE = 48, 3, 5e-5
"""Tools of a batch, most requests of a tool, and AdamW's highest learning rate."""
SAMPLED = 4


class Encoder(torch.nn.Module):
    """MiniLM with the pooling of the embedded encoder: the mean of the tokens, scaled to length
    1.
    """

    def __init__(self, folder: Path, *, words: bool) -> None:
        super().__init__()
        self.model = BertModel.from_pretrained(
            folder,
            add_pooling_layer=False,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.model.embeddings.word_embeddings.weight.requires_grad = words
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    def forward(self, texts: Sequence[str], tokens: int) -> torch.Tensor:
        """The vectors, shape (len(texts), 384); encoded in parts, by length, to save padding."""
        ids = self.tokenizer(list(texts), truncation=True, max_length=tokens)["input_ids"]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        parts = 3 if len(ids) > 30 else 1
        cut = [order[len(order) * n // parts : len(order) * (n + 1) // parts] for n in range(parts)]
        vectors = torch.cat([self._encode([ids[at] for at in rows]) for rows in cut])
        places = torch.empty(len(order), dtype=torch.long)
        places[torch.tensor(order)] = torch.arange(len(order))
        return vectors[places]

    def _encode(self, ids: list[list[int]]) -> torch.Tensor:
        width = max(map(len, ids))
        padded = torch.tensor([row + [0] * (width - len(row)) for row in ids])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ids])
        hidden = self.model(input_ids=padded, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).float()
        return torch.nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1))


def loss_of(documents: torch.Tensor, requests: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Requests find their tool among the batch's, by its document and by the centroid of its
    document and its other requests, as an index with examples has it; and tools their requests.
    """
    tool_of = torch.tensor(batch.tool_of)
    scores = SCALE * requests @ documents.T
    sums = documents.index_add(0, tool_of, requests)
    without = torch.nn.functional.normalize(sums[tool_of] - requests)
    centroids = SCALE * requests @ torch.nn.functional.normalize(sums).T
    centroids = centroids.scatter(
        1, tool_of[:, None], SCALE * (requests * without).sum(1, keepdim=True)
    )
    same_text = torch.tensor(
        [[one == other for other in batch.documents] for one in batch.documents]
    )
    right = same_text[tool_of]
    own = torch.nn.functional.one_hot(tool_of, len(batch.documents)).bool()
    forward = sum(
        torch.nn.functional.cross_entropy(each.masked_fill(right & ~own, -1e4), tool_of)
        for each in (scores, centroids)
    )
    backward = torch.log_softmax(scores.T, dim=1)
    mean_right = (backward * own.T).sum(1) / own.T.sum(1)
    return forward / 2 - 0.3 * mean_right.mean()


def nearest(encoder: Encoder, groups: dict[str, list[Example]]) -> dict[str, list[str]]:
    """For each group the others, nearest first by the mean vector of some of its tools."""
    draw = random.Random(0)  # noqa: S311  a sample
    agents = sorted(groups)
    texts = [
        document(one, draw) for agent in agents for one in draw.choices(groups[agent], k=SAMPLED)
    ]
    with torch.no_grad():
        parts = [encoder(texts[at : at + 96], 48) for at in range(0, len(texts), 96)]
    means = torch.cat(parts).view(len(agents), SAMPLED, -1).mean(1)
    units = torch.nn.functional.normalize(means).numpy()
    order = np.argsort(-units @ units.T, axis=1)
    return {agent: [agents[at] for at in order[n][1:60]] for n, agent in enumerate(agents)}


def main() -> None:
    """Train and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--base", type=Path, required=True, help="folder of the weights to start from")
    add("--collections", type=Path, required=True, help="see train.sh")
    add("--out", type=Path, required=True)
    add("--seed", type=int, default=0)
    add("--passes", type=int, default=6, help="over the data")
    add("--words", action="store_true", help="train the word embeddings, too")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    draw = random.Random(options.seed)  # noqa: S311  a sample
    encoder = Encoder(options.base, words=options.words)
    seeds = range(options.seed, options.seed + options.passes)
    passes = [training_groups(options.collections, seed) for seed in seeds]
    near = nearest(encoder, passes[0])
    steps = [batch for groups in passes for batch in batches(groups, near, SIZE, EACH, draw)]
    print(len(steps), "steps", flush=True)
    trained = [each for each in encoder.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.01)
    average = [each.detach().clone() for each in trained]
    encoder.train()
    begun, losses, pairs = time.monotonic(), [], 0
    for number, batch in enumerate(steps):
        warm, left = min(1.0, (number + 1) / 60), max(0.02, 1 - number / len(steps))
        for group in optimizer.param_groups:
            group["lr"] = RATE * warm * left
        loss = loss_of(
            encoder(batch.documents, DOCUMENT_TOKENS),
            encoder(batch.requests, REQUEST_TOKENS),
            batch,
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        keep = min(AVERAGE, (number + 1) / (number + 10))
        torch._foreach_lerp_(average, [each.detach() for each in trained], 1 - keep)
        losses.append(loss.item())
        pairs += len(batch.requests)
        if number % 25 == 24:
            rate = pairs / (time.monotonic() - begun)
            mean = math.fsum(losses[-25:]) / 25
            print(f"{number + 1} loss {mean:.3f}, {rate:.1f} pairs/s", flush=True)
    save(encoder, trained, average, options.out)


def save(
    encoder: Encoder, trained: list[torch.Tensor], average: list[torch.Tensor], path: Path
) -> None:
    """Write the averaged weights, as safetensors."""
    own = {id(each): mean for each, mean in zip(trained, average, strict=True)}
    tensors = {
        name: own.get(id(each), each).detach().clone().contiguous()
        for name, each in encoder.model.named_parameters()
    }
    save_file(tensors, path)


if __name__ == "__main__":
    main()
