"""`posix`: the module `signal` without its enums.

`_signal` is the C half of `signal`: the same names, without the 6 ms that its enums cost every
shim and every hook. The public module is the fallback.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as posix
else:
    try:
        import _signal as posix
    except ImportError:  # an interpreter other than CPython
        import signal as posix

__all__ = ["posix"]
