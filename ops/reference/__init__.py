"""The reference pages that follow from the code: configuration, topics and record schemas, command line, metrics.

`python -m ops.reference docs/reference` writes them; each `*_page` function gives a page as Markdown. What is
documented is discovered in the source: a new settings class, schema, command or metric needs no entry here.
"""
