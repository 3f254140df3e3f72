"""The commands of ``kfree``: each takes files and says on the screen what it did."""
