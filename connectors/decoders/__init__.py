"""Decoders: Kafka source rows in, machines' batches of events out. `registry` knows the decoder of each wire format.

Each module of `formats` declares the decoder of one wire format, a `format` of `infra/topics.yaml`; what several of
them share stands in the modules beside `formats`.
"""
