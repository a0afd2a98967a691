"""How much foreign input may take: the one set of limits that all sources keep.

What users may have to raise is an option of every catalog (`SourceOptions`), with these defaults.
"""

MAX_BYTES = 128_000_000
"""Of one file or answer, decompressed. GitHub's dereferenced OpenAPI document has 73 MB."""
MAX_SECONDS = 600.0
"""Of listing one source, all in all."""
MAX_MEMORY = 2_000_000_000
"""Bytes that listing one source may take."""

ENCODINGS = ("", "identity", "gzip", "deflate")
"""Of an HTTP answer: what becomes at most a thousand times as long, so that it can be decompressed
chunk by chunk; two compressions, one on the other, or another format could fill the memory."""

MAX_RECORD = 4_000_000
"""Characters and values of one record, counting what is referred to twice as often."""
MAX_DEPTH = 200
"""Levels of one record. The deepest public schema seen has about 40."""
MAX_DIGITS = 4_300
"""Of a number: more, Python does not convert by default."""
MAX_RECORDS = 1_000_000
"""Records of one file."""
MAX_REJECTED = 100_000
"""Records of one source that are rejected; with more, the source is another than configured."""
MAX_NAME = 512
"""Characters. The longest real tool name seen in public catalogs is about 120."""
MAX_DESCRIPTION = 100_000
"""Characters. An encoder reads about 1,000; more is a mistake or an attack, and it would bloat
every reader.
"""
MAX_SCHEMA = 1_000_000
"""Characters of canonical JSON, for the input and for the output schema."""
MAX_RAW = 2_000
"""Characters of a place and of a reason."""
