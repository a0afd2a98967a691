"""The configuration of the older board, and what its release depends on besides its sources."""

from typing import Any

from pegboard.canonical import digest
from pegboard.ranker.model import default_ranker
from pegboard.store.contract import CONTRACT
from tasks.settings.configuration import Configuration
from tasks.steps.compose import AGENTS_VERSION, COMPOSE_VERSION
from tasks.steps.edges import EDGES_VERSION
from tasks.steps.release_spec import RECORDS_VERSION
from tests.conftest import CATALOGS, Workshop

INDEX = '[[indexes]]\nname = "full"\nencoder = "hashing/16"\n'
ENRICH = '[enrich]\nmodel = "openai/scripted"\nproducts = ["questions"]\nquestions = 3\n'


def configure(workshop: Workshop, llm: str, more: str = "") -> Configuration:
    """Write the configuration of three catalogs, one small index and an LLM, and read it."""
    enrich = f'{ENRICH}api_base = "{llm}"\n'
    return workshop.configure(INDEX, f"{CATALOGS}\n{enrich}\n{more}")


def versions() -> dict[str, Any]:
    """Return what decides the digest of a release, besides its sources."""
    shares = (1.0, 0.0)
    rankers = [default_ranker("hashing/16", share).with_written_questions() for share in shares]
    return {
        "contract": CONTRACT,
        "compose": COMPOSE_VERSION,
        "agents": AGENTS_VERSION,
        "records": RECORDS_VERSION,
        "edges": EDGES_VERSION,
        "rankers": digest([ranker.to_dict() for ranker in rankers]),
    }
