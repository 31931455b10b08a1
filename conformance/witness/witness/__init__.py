"""A second implementation of the grantee-facing side of an OAP memory gateway, written from docs/protocol.md alone."""
