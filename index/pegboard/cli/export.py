"""`pegboard export`: a release as Parquet files."""

import argparse

from pegboard.cli.output import Subparsers, add_board_option, print_json
from pegboard.cli.release_names import NAME_HELP, named_release
from pegboard.store.export import export_release
from pegboard.store.releases import ReleaseStore

EPILOG = """\
examples:
  pegboard export live --out parquet
  duckdb -c "SELECT id, name FROM 'parquet/release=*/tools/*/*.parquet'"
  duckdb -c "SELECT catalog, count(*) FROM read_parquet('parquet/*/tools/*/*.parquet', hive_partitioning=true) GROUP BY 1\""""


def register_export(subparsers: Subparsers) -> None:
    """Add the command."""
    export: argparse.ArgumentParser = subparsers.add_parser(
        "export",
        help="write a release as Parquet files",
        description="Write a release as hive-partitioned Parquet: "
        "OUT/release=ID/TABLE/catalog=NAME/part-0.parquet, and the "
        "release's record in release.json beside the tables. It is there whole or not at all.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    export.add_argument("release", help=NAME_HELP)
    add_board_option(export)
    export.add_argument(
        "--out", required=True, metavar="DIR", help="the folder under which it is written"
    )
    export.add_argument(
        "--force", action="store_true", help="replace what is there under the release's name"
    )
    export.add_argument(
        "--json", action="store_true", help="print what was written as one JSON object"
    )
    export.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> int:
    store = ReleaseStore(options.board)
    exported = export_release(
        store, named_release(store, options.release), options.out, force=options.force
    )
    if options.json:
        print_json(exported.to_dict())
        return 0
    done = "is written to" if exported.written else "is already in"
    print(
        f"Release {exported.release} {done} {exported.folder}: {exported.files} files, "
        f"{exported.bytes} bytes"
    )
    for name, rows in exported.rows.items():
        print(f"  {name}: {rows} rows")
    return 0
