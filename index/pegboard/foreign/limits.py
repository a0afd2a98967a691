"""Limits on untrusted input, shared by all sources.

Limits that users may have to raise are options of every catalog (`SourceOptions`), with these
defaults.
"""

MAX_BYTES = 128_000_000
"""Bytes of a file or HTTP body, decompressed. GitHub's dereferenced OpenAPI document has 73 MB."""
MAX_SECONDS = 600.0
"""Seconds for listing one source."""
MAX_MEMORY = 2_000_000_000
"""Bytes of memory for listing one source."""

ENCODINGS = ("", "identity", "gzip", "deflate")
"""Content encodings accepted from HTTP servers. They expand at most a thousandfold, so the body can
be decompressed in chunks; nested or other encodings could fill the memory."""

MAX_RECORD = 4_000_000
"""Characters plus values of one record; a value that is referred to several times counts each
time."""
MAX_DEPTH = 200
"""Levels of nesting of one record. The deepest public schema seen has about 40."""
MAX_DIGITS = 4_300
"""Digits of a number; Python's default limit for converting text to an integer."""
MAX_RECORDS = 1_000_000
"""Number of records in one file."""
MAX_REJECTED = 100_000
"""Number of rejected records of one source; more means that the source is misconfigured."""
MAX_NAME = 512
"""Characters of a tool's name. The longest name seen in public catalogs is about 120."""
MAX_DESCRIPTION = 100_000
"""Characters of a description. Encoders read about 1,000; more is a mistake or an attack, and would
increase the memory of every reader."""
MAX_SCHEMA = 1_000_000
"""Characters of canonical JSON, for the input and the output schema each."""
MAX_RAW = 2_000
"""Characters of the place and of the reason of a rejected record."""
