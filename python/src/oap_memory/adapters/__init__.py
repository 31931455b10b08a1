"""The memory tools in the forms of model providers and frameworks."""
