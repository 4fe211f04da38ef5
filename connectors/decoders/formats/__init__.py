"""One module a wire format. Each declares its `DECODER`; connectors/decoders/registry.py lists them."""
