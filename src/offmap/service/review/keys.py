"""The keys of the page, said once: the help lists them, and tests press them."""

KEYS: dict[str, tuple[tuple[str, str], ...]] = {
    "Queue": (
        ("j", "next group"),
        ("k", "previous group"),
        ("g", "most similar group"),
    ),
    "This group": (
        ("n", "type its name"),
        ("1 – 6", "take a suggested name"),
        ("m", "merge: type the other group, Enter"),
        ("t", "take apart: split it in two"),
        ("s", "skip: to the end of the queue"),
        ("d", "discard"),
    ),
    "Its rows": (
        ("x", "select the row in focus, and go to the next"),
        ("e", "select every row on the page, or none"),
        ("w", "why the row in focus is unusual; again to go back"),
        ("v", "move selected rows: type the group, Enter"),
        ("c", "label selected rows: type the class, Enter"),
        (".", "next page of rows, towards the edge"),
        (",", "previous page of rows"),
    ),
    "World": (
        ("l", "learn what was named"),
        ("u", "undo"),
        ("r", "redo"),
        ("a", "audit rows"),
        ("q", "queue"),
        ("p", "map of the rows"),
        ("b", "dashboard"),
        ("h", "history"),
        ("i", "dark or light"),
        ("?", "this help"),
        ("Esc", "leave a field or the help"),
    ),
}
