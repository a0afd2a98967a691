"""Benchmarks in a handful of rows of our own, in every layout, with rows among them that cannot be
used.
"""

import json

import pytest

PYTHON_LIST = "['PaintTool', 'SawTool']"
FILES = {
    "seal-tools": {
        "tool.jsonl": [
            {
                "api_name": "feedHens",
                "api_description": "Feed the hens of a yard",
                "field": "Farming/Poultry",
                "parameters": {"grain": {"type": "str", "description": "What they get"}},
                "required": ["grain"],
                "responses": {"eaten": {"type": "int", "description": "Grams"}},
            },
            {
                "api_name": "collectEggs",
                "api_description": "Collect the eggs of the day",
                "field": "Farming/Poultry",
                "parameters": {"basket": {"type": "str", "description": "Where they go"}},
                "required": [],
                "responses": {"eggs": {"type": "int", "description": "How many"}},
            },
            {"api_description": "has no name", "field": "Farming"},
        ],
        "test_in_domain.jsonl": [
            {
                "id": "1",
                "query": "Give the hens some barley.",
                "calling": [{"api": "feedHens", "parameters": {}}],
            },
            {
                "id": "2",
                "query": "Feed the hens and bring me the eggs.",
                "calling": [{"api": "feedHens"}, {"api": "collectEggs"}, {"api": "feedHens"}],
            },
            {"id": "3", "query": "", "calling": [{"api": "feedHens"}]},
            {"id": "4", "query": "Nothing is called.", "calling": []},
            "no row at all",
        ],
        "test_out_domain.jsonl": [
            {
                "id": "5",
                "query": "Milk the goat.",
                "calling": [{"api": "milkGoat", "parameters": {}}],
            },
        ],
        "train.jsonl": [{"id": "6", "query": "Feed them.", "calling": [{"api": "feedHens"}]}],
    },
    "metatool": {
        "plugin_des.json": {
            "whittle": "Carves figures out of wood.",
            "glaze": "Glazes pots and fires them.",
        },
        "single_tool_queries.jsonl": [
            {"query": "Make me a wooden owl.", "tool": "whittle"},
            {"query": "My mug should shine.", "tool": ["glaze"]},
            {"query": "Carve a spoon.", "tool": "whittle"},
            {"query": "No tool is named here.", "tool": None},
        ],
        "example_queries.jsonl": [
            {"query": "Carve a spoon.", "tool": "whittle"},
            {"query": "Fire this bowl.", "tool": "glaze"},
            {"query": "Weave a mat.", "tool": "loom"},
        ],
        "big_tool_des.json": {"PaintTool": "Paints walls.", "SawTool": "Saws boards."},
        "multi_tool_queries.jsonl": [
            {"query": "Saw a shelf and paint it.", "tool": ["SawTool", "PaintTool"]},
            {"query": "A blue box, please.", "tool": PYTHON_LIST},
        ],
    },
    "toollinkos": {
        "tools.json": [
            {
                "name": "sail_out",
                "description": "Sails out of the harbour.",
                "parameters": [
                    {"name": "tide", "type": "string", "description": "The tide.", "required": True}
                ],
                "func_type": "regular",
                "depends_on": [
                    {
                        "name": "read_tide",
                        "dependence_type": "PARAMETER_DIRECTLY_DEPENDS_ON",
                        "parameter_name": "tide",
                    },
                    {"name": "raise_anchor", "dependence_type": "TOOL_DIRECTLY_DEPENDS_ON"},
                ],
            },
            {
                "name": "read_tide",
                "description": "Reads the tide.",
                "parameters": [],
                "func_type": "core",
                "depends_on": [],
            },
            {
                "name": "raise_anchor",
                "description": "Raises the anchor.",
                "parameters": [],
                "depends_on": [],
            },
        ],
        "instances.jsonl": [
            {
                "user_query": "Let us put to sea.",
                "main_golden_function_name": "sail_out",
                "golden_function_names": ["sail_out", "read_tide", "raise_anchor"],
            },
            {"user_query": "How high is the water?", "golden_function_names": ["read_tide"]},
            {"user_query": "Up with it.", "main_golden_function_name": "raise_anchor"},
            {"user_query": "Nothing golden.", "golden_function_names": []},
        ],
    },
    "ultratool": {
        "tools.json": [
            {
                "name": "oven_heat",
                "description": "Heats the oven.",
                "arguments": {"type": "object", "properties": {"degrees": {"type": "integer"}}},
                "results": {"type": "object", "properties": {"status": {"type": "boolean"}}},
            },
            {
                "name": "dough_knead",
                "description": "Kneads dough.",
                "arguments": {"type": "object", "properties": {}},
                "results": {"type": "object", "properties": {}},
            },
        ],
        "instances.jsonl": [
            {
                "question": "Bake a loaf.\n",
                "plan": [
                    {"step": "1. Prepare", "tool": "null"},
                    {"step": "1.1 Knead the dough", "tool": "dough_knead()"},
                    {"step": "1.2 Wait", "tool": "No tool required"},
                    {"step": "2.1 Heat the oven to 220", "tool": "oven_heat(degrees='220')"},
                    {"step": "2.2 Cool it", "tool": "rack_place(what='loaf')"},
                ],
                "domain": "Kitchen",
            },
            {
                "question": "Only thinking.",
                "plan": [{"step": "1. Think", "tool": "No tool required"}],
            },
            {"question": "A plan in words.", "plan": "knead, then bake"},
        ],
    },
    "livemcpbench": {
        "tools.json": [
            {
                "name": name,
                "description": description,
                "category": "Garden",
                "tools": {
                    name: {
                        "tools": [
                            {"name": tool, "description": what, "inputSchema": {"type": "object"}}
                            for tool, what in own
                        ]
                    }
                },
            }
            for name, description, own in (
                ("Shed", "Tools for beds.", [("dig", "Digs a hole."), ("rake", "Rakes a bed.")]),
                (
                    "Rain",
                    "Everything about water.",
                    [("water_bed", "Waters a bed."), ("dig", "Digs a ditch.")],
                ),
            )
        ],
        "annotations.jsonl": [
            {
                "Question": "Plant a rose and water it.",
                "Annotator Metadata": {
                    "Steps": "1. dig a hole\n2. water the rose",
                    "Tools": "1. dig\n2. water_bed",
                    "Number of steps": "2",
                },
            },
            {
                "Question": "Tidy up.",
                "Annotator Metadata": {
                    "Steps": "1. rake the bed\n2. look",
                    "Tools": "1. rake\n2. prune\n3. dig",
                },
            },
            {
                "Question": "Only a tool that nobody has.",
                "Annotator Metadata": {"Steps": "1. fly", "Tools": "1. fly"},
            },
            {"Question": "No metadata."},
        ],
    },
    "toolret": {
        "web/tools-00000-of-00001.jsonl": [
            {
                "id": "kites_tool_1",
                "documentation": json.dumps(
                    {
                        "api_name": "fly",
                        "api_description": "Flies a kite",
                        "category_name": "Toys",
                        "required_parameters": [
                            {"name": "wind", "type": "NUMBER", "description": "its speed"}
                        ],
                        "optional_parameters": [
                            {"name": "tail", "type": "STRING", "description": "its length"}
                        ],
                        "method": "GET",
                    }
                ),
            },
            {
                "id": "kites_tool_2",
                "documentation": {"name": "fly", "description": "Flies a paper plane"},
            },
            {
                "id": "kites_tool_2",
                "documentation": {"name": "again", "description": "the same id"},
            },
        ],
        "code/tools.json": [
            {
                "id": "math_tool_7",
                "documentation": "Adds two numbers, written as plain text",
                "category": "code",
            },
            {
                "id": "math_tool_8",
                "documentation": {
                    "func_name": "mul",
                    "description": "Multiplies",
                    "parameters": "a, b",
                },
            },
            {"documentation": {"name": "has no id"}},
        ],
        "kites/queries-1.jsonl": [
            {
                "id": "kites_query_1",
                "query": "Get the kite into the air.",
                "instruction": "Given a `kite` task, retrieve tools that fly it.",
                "labels": json.dumps(
                    [
                        {"id": "kites_tool_1", "doc": {}, "relevance": 1},
                        {"id": "math_tool_7", "relevance": 0},
                    ]
                ),
                "category": "web",
            },
            {
                "id": "kites_query_2",
                "query": "And the plane.",
                "labels": [{"id": "kites_tool_2"}],
                "category": "web",
            },
            {"id": "kites_query_3", "query": "Nothing right.", "labels": [], "category": "web"},
            {"id": "kites_query_4", "query": "Cut off.", "labels": "[{", "category": "web"},
        ],
        "math/queries-2.jsonl": [
            {
                "id": "math_query_1",
                "query": "What is 3 plus 4 times 5?",
                "instruction": "Given a `sum`, retrieve tools that calculate.",
                "labels": [
                    {"id": "math_tool_7", "relevance": 1},
                    {"id": "math_tool_8", "relevance": 1},
                    {"id": "gone_tool_1"},
                ],
            },
        ],
    },
}
FILES["toolsandbox"] = FILES["toollinkos"]


@pytest.fixture
def specimen(tmp_path):
    """Write a benchmark into a folder with its name, and return the folder; `without` leaves files
    out.
    """

    def write(name, without=()):
        folder = tmp_path / name
        folder.mkdir()
        for file, content in FILES[name].items():
            if file in without:
                continue
            path = folder / file
            path.parent.mkdir(exist_ok=True)
            rows = (
                [row if isinstance(row, str) else json.dumps(row) for row in content]
                if file.endswith("l")
                else []
            )
            path.write_text("\n".join(rows) if rows else json.dumps(content), "utf-8")
        return folder

    return write
