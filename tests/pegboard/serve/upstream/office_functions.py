"""Functions that the gateway may call."""


def add_numbers(first: int, second: int = 1) -> dict:
    """Adds two numbers."""
    return {"sum": first + second}


async def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}!"


def spill_ink() -> str:
    """Spills ink."""
    raise ValueError("the ink is gone")
