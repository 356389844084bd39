"""The contract of the gRPC port, generated."""
