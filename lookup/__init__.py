"""How one rows event finds its rows, and what that costs."""
