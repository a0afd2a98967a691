"""The public benchmarks in their own file formats: read, evaluated and compared with papers."""

NAMES: dict[str, str] = {
    "seal-tools": "tool.jsonl beside dev.jsonl or test_*.jsonl",
    "metatool": "plugin_des.json with single_tool_queries.jsonl (and example_queries.jsonl); "
    "big_tool_des.json with multi_tool_queries.jsonl",
    "toollinkos": "tools.json beside instances.jsonl",
    "toolsandbox": "tools.json beside instances.jsonl, converted as for Graph RAG-Tool Fusion",
    "livemcpbench": "tools.json beside annotations.jsonl",
    "ultratool": "tools.json beside instances.jsonl",
    "toolret": "files with `tools` and files with `queries` in their names, JSON, JSON lines or "
    "Parquet, in any folder below",
    "bfcl": "tools.jsonl beside queries.jsonl, in the layout of toolret",
    "acebench-en": "tools.jsonl beside queries.jsonl, in the layout of toolret",
}
"""The benchmarks, each with the files that its folder holds."""
