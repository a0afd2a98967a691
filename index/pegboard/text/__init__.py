"""Rules about text: what is read out of it, and what must not leave it.

    words.py          words as the text search counts them: identifiers, stems, stop words
    plain_text.py     descriptions as plain sentences, without markup and code
    boilerplate.py    sentences that many tools of a catalog share
    languages.py      the language of a text, and whether an index fits its texts
    redaction.py      texts without credentials, for logs, messages and prompts
    secret_values.py  known secrets, also in their encodings
    secret_references.py  `${VARIABLE}` in settings, in place of secrets

Rules about untrusted text of catalogs, such as instructions to a model, are in `tasks/safety`.
"""
