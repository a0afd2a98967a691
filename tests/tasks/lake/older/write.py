"""Write the board that an older version of Pegboard left behind, for `test_older_lakes.py`:
`python -m tests.tasks.lake.older.write`.

    board.tar.gz   project/ with the files of the catalogs, and project/board with two releases
    written.json   the commit that wrote it, and the versions of what its release is made of

The second release was built while the source of the catalog `desk` was missing, so that the catalog
keeps the tools of its first snapshot. The ledger holds an LLM's replies, and one journal that a
killed run left. The files in the repository were written at the commit that `written.json` names.
Do not write them again to make a test pass: they stand for the boards that users have.
"""

import json
import subprocess
import tarfile
import tempfile
from dataclasses import asdict
from pathlib import Path

from pegboard.canonical import digest
from tasks.enrichment.ledger import OPEN, LakeLedger, _to_frame, _to_line
from tests.conftest import FUNCTIONS, REQUESTS, SERVERS, Workshop
from tests.scripted_llm import scripted_llm
from tests.tasks.lake.older.project import configure, versions

HERE = Path(__file__).parent


def main() -> None:
    """Build the two releases and store the project as an archive."""
    with tempfile.TemporaryDirectory() as folder, scripted_llm() as llm:
        workshop = Workshop(Path(folder) / "project")
        workshop.folder.mkdir()
        build_twice(workshop, llm.url)
        leave_a_journal(workshop)
        with tarfile.open(HERE / "board.tar.gz", "w:gz", compresslevel=9) as archive:
            archive.add(workshop.folder, "project")
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=HERE,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    written = {"commit": commit, "versions": versions()}
    (HERE / "written.json").write_text(json.dumps(written, indent=1) + "\n", "utf-8")


def build_twice(workshop: Workshop, llm: str) -> None:
    """Publish a release of three catalogs, then one for which a source failed."""
    servers = {name: SERVERS[name] for name in ("git", "weather")}
    workshop.servers(servers)
    workshop.write("functions.json", FUNCTIONS)
    requests = workshop.write("requests.json", REQUESTS)
    configuration = configure(workshop, llm)
    workshop.run(configuration)
    requests.unlink()
    servers["weather"] = servers["weather"][:1]
    workshop.servers(servers)
    workshop.run(configuration)


def leave_a_journal(workshop: Workshop) -> None:
    """Move one reply of the ledger to a journal, as a killed run leaves it."""
    lake = workshop.lake
    journalled, *stored = LakeLedger(lake).load().all()
    lake.delete(*lake.files("ledger"))
    rows = [asdict(reply) for reply in stored]
    lake.write(f"ledger/{digest(rows)}.parquet", _to_frame(rows))
    lake.append(f"{OPEN}/{'0' * 32}.jsonl", _to_line(journalled))


if __name__ == "__main__":
    main()
