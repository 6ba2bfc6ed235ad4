"""Pages besides the review: the frame that they share."""

from markupsafe import Markup

from offmap.service.review.rendering import asset

_FRAME = Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Offmap</title>
<link rel="icon" href="{icon}">
<link rel="stylesheet" href="{sheet}">
</head>
<body>
<main class="{kind}">
<h1>{title}</h1>
{content}
</main>
</body>
</html>
""")


def plain_page(title: str, content: Markup, kind: str = "plain") -> str:
    """A page with one heading; everything that is no markup is escaped.

    Example:
        >>> "<h1>1 &lt; 2</h1>" in plain_page("1 < 2", Markup("<p>So it is.</p>"))
        True
    """
    return str(
        _FRAME.format(title=title, content=content, kind=kind, icon=asset("icon.svg"), sheet=asset("review.css"))
    )
