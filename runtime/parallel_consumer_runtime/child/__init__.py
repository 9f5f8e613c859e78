"""What runs in a process of its own for handlers, and the words that it and the member speak. Imports no event loop."""
