"""Readers: any file or table becomes a raw table."""
