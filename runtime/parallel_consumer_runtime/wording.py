"""What an error says, as text that can be logged, encoded and sent, whatever the error is."""


def words_of(error: BaseException) -> str:
    """Return the error's message. Its own code may raise, and what it quotes may be no text that can be encoded."""
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - a handler's exception may do anything, here too
        return f"it cannot be described: {type(second).__name__}"
    return str.__str__(text) if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
