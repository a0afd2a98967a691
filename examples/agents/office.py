"""Tools of an office and a board of them, which the examples of this folder share."""

from typing import Any

import pegboard


def book_room(day: str, people: int = 2) -> str:
    """Book a meeting room in the office."""
    return f"Room 4 is booked on {day} for {people}."


def order_lunch(dish: str) -> str:
    """Order lunch at the canteen."""
    return f"{dish} is ordered."


def get_forecast(city: str) -> str:
    """Return the weather forecast of a city: rain, wind and sun."""
    return f"It will rain in {city}."


def convert_currency(amount: float, currency: str) -> str:
    """Convert an amount of euros into another currency."""
    return f"{amount * 1.1:.2f} {currency}"


def list_employees(department: str) -> str:
    """List the employees of a department."""
    return f"Ana and Ben work in {department}."


FUNCTIONS = [book_room, order_lunch, get_forecast, convert_currency, list_employees]
REQUEST = "We need a meeting room for four on Monday."


def open_board() -> pegboard.Board:
    """Return a board of the tools. Yours is `pegboard.open("s3://acme/pegboard")`.

    It compares words, so that the examples need no model; without `encoder=` it would understand
    more.
    """
    return pegboard.Board.from_tools(FUNCTIONS, encoder="hashing/256")


def call(hit: pegboard.Hit, arguments: dict[str, Any]) -> str:
    """Call the function that a hit stands for."""
    functions = {function.__name__: function for function in FUNCTIONS}
    return functions[hit.tool.name](**arguments)
