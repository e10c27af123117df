"""Print each test that some row of ``features.toml`` names, one in a line."""

from tests.inventory.table import read_promises

if __name__ == "__main__":
    print("\n".join(sorted({promise.test for promise in read_promises() if ".py::" in promise.test})))
