"""How ledgerd's garbage is collected."""

import gc


def tune_garbage_collection() -> None:
    """Looks for cycles rarely: a batch makes tens of thousands of objects that die with it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
