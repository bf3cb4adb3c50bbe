"""Shares as people read them: only all of them is 100.0%, and only none is 0.0%."""


def rounded(share: float, decimals: int = 3) -> str:
    """A share with so many decimals, never rounded to 0 or 1 unless it is."""
    least = 10.0**-decimals
    if 0 < share < least / 2:
        share = least
    elif 1 - least / 2 <= share < 1:
        share = 1 - least
    return f"{share:.{decimals}f}"


def percent(share: float, decimals: int = 1) -> str:
    """A share in percent, never rounded to 0% or 100% unless it is."""
    return f"{100 * float(rounded(share, decimals + 2)):.{decimals}f}%"
