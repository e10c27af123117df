"""The version of hookviz."""

VERSION = "0.1.0"
