"""What a page must not have, as functions that the browser runs; each returns what it found."""

OVERFLOW = """() => {
  const wide = document.documentElement.clientWidth;
  const scrolls = (one) => one && (/auto|scroll/.test(getComputedStyle(one).overflowX) || scrolls(one.parentElement));
  const page = document.documentElement.scrollWidth > wide ? ["the page itself"] : [];
  const parts = [...document.querySelectorAll("#page *")]
    .filter((one) => one.getBoundingClientRect().right > wide + 1)
    .filter((one) => !scrolls(one.parentElement) && !one.closest(".unseen"))
    .map((one) => `${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`);
  return [...page, ...parts];
}"""
"""Elements that reach beyond the right edge and cannot be scrolled to."""

LOW_CONTRAST = """() => {
  const parsed = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const over = (top, below) => {
    const alpha = top[3] ?? 1;
    return [0, 1, 2].map((place) => alpha * top[place] + (1 - alpha) * below[place]);
  };
  const behind = (one) => {
    const colour = parsed(getComputedStyle(one).backgroundColor);
    const below = one.parentElement ? behind(one.parentElement) : [255, 255, 255];
    return over(colour, below);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(document.getElementById("page"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    const words = walker.currentNode.textContent.trim();
    if (!words || one.closest("svg, :disabled, datalist, .unseen, .jump") || !one.getClientRects().length) continue;
    const below = behind(one);
    const [a, b] = [light(over(parsed(getComputedStyle(one).color), below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(`${words.slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return found;
}"""
"""Texts that stand out less from what is behind them than WCAG 2 AA asks for."""

NAMELESS = """() => {
  const attributes = ["aria-label", "aria-labelledby"];
  const named = (one) =>
    attributes.some((name) => one.getAttribute(name)) || one.labels?.length || one.textContent.trim();
  const controls = [...document.querySelectorAll("#page a, #page button, #page input:not([type=hidden]), #page meter")];
  const pictures = [...document.querySelectorAll("#page img")].filter((one) => !one.hasAttribute("alt"));
  const images = [...document.querySelectorAll("#page svg")].filter(
    (one) => !one.getAttribute("aria-label") && one.getAttribute("aria-hidden") !== "true",
  );
  return [...controls.filter((one) => !named(one)), ...pictures, ...images].map((one) => one.outerHTML.slice(0, 120));
}"""
"""Controls and pictures that a screen reader could not name."""
