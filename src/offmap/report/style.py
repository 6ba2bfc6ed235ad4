"""The report's style sheet: light and dark, wide and narrow, screen and paper."""

LIGHT = """
  --ink: #1d2733; --muted: #5b6876; --grid: #e3e7ec; --paper: #ffffff; --back: #f4f6f8; --edge: #dde2e8;
  --normal: #0072b2; --novel: #d55e00; --line-3: #009e73; --line-4: #cc79a7; --line-5: #e69f00; --line-6: #56b4e9;
  --good: #00694d; --bad: #a84300; --off: #fdf0e3; --far: #fad3ad; --best: #e2f0f9;
"""
DARK = """
  --ink: #e8ecf1; --muted: #a3afbd; --grid: #2f3945; --paper: #1a212a; --back: #11161c; --edge: #323c48;
  --normal: #56b4e9; --novel: #f0903f; --line-3: #2fc49a; --line-4: #e39cc4; --line-5: #f2bd45; --line-6: #9ad4f5;
  --good: #4fd1a8; --bad: #ffa561; --off: #3d2e1f; --far: #6b431c; --best: #173a52;
"""
STYLE = f"""
:root {{ color-scheme: light dark; {LIGHT} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}
* {{ box-sizing: border-box; }}
body {{
  margin: 0; background: var(--back); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}}
main {{ max-width: 1100px; margin: 0 auto; padding: 32px 20px 48px; }}
h1 {{ font-size: 30px; line-height: 1.2; margin: 0 0 8px; letter-spacing: -0.01em; overflow-wrap: anywhere; }}
h2 {{ font-size: 22px; margin: 0; overflow-wrap: anywhere; }}
h3 {{ font-size: 17px; margin: 0 0 12px; }}
h4 {{ font-size: 15px; margin: 0 0 6px; }}
p {{ margin: 0 0 12px; max-width: 75ch; overflow-wrap: anywhere; }}
a {{ color: var(--normal); }}
.lead {{ font-size: 17px; color: var(--muted); white-space: pre-line; }}
.note {{ font-size: 13px; color: var(--muted); margin: 8px 0 0; }}
.panel, .card {{ background: var(--paper); border: 1px solid var(--edge); border-radius: 12px; }}
.panel {{ display: grid; grid-template-columns: minmax(0, 1fr); gap: 24px; padding: 22px 24px; margin: 22px 0; }}
.panel > h3 {{ margin: 0; }}
.panel > header p {{ margin: 4px 0 0; color: var(--muted); }}
nav ul, .legend, .tiles, .cards {{ list-style: none; margin: 0; padding: 0; }}
main > .cards {{ margin-top: 18px; }}
nav ul {{ display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 12px 0 0; }}
.cards {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(210px, 1fr)); gap: 14px; }}
.card {{ padding: 14px 18px; }}
.card .label {{ font-size: 13px; color: var(--muted); font-weight: 600; }}
.card .value {{ font-size: 30px; line-height: 1.25; font-weight: 650; font-variant-numeric: tabular-nums; }}
.card .context {{ font-size: 13px; color: var(--muted); }}
.card .verdict {{ font-size: 13px; font-weight: 600; }}
.good {{ color: var(--good); }}
.bad {{ color: var(--bad); }}
main > .cards-of {{ font-size: 14px; color: var(--muted); margin: 24px 0 -8px; }}
.columns, .figures {{ display: grid; gap: 28px; grid-template-columns: 1.6fr 1fr; }}
.columns {{ align-items: start; }}
.columns > * {{ min-width: 0; }}
.figures {{ row-gap: 0; }}
.figures > figure {{ display: grid; grid-row: span 3; grid-template-rows: subgrid; }}
figure {{ margin: 0; min-width: 0; }}
figure > svg {{ display: block; width: 100%; height: auto; }}
figure > svg * {{ stroke-linejoin: round; stroke-linecap: butt; }}
.legend {{ display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 13px; color: var(--muted); margin-bottom: 8px; }}
.legend li {{ display: flex; align-items: center; gap: 6px; overflow-wrap: anywhere; }}
.swatch {{ width: 18px; height: 12px; flex: none; }}
.swatch.filled {{ fill: currentColor; }}
.swatch.stroked {{ fill: none; stroke: currentColor; stroke-width: 2; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 6px 10px; text-align: right; vertical-align: top; white-space: nowrap; }}
th, td {{ border-bottom: 1px solid var(--grid); }}
thead th {{ color: var(--muted); font-weight: 600; font-size: 0.93em; vertical-align: bottom; }}
thead th {{ border-bottom-color: var(--edge); white-space: normal; }}
thead th.fact {{ white-space: nowrap; }}
th:first-child, td:first-child, td.words, th.words {{ text-align: left; }}
td.words {{ color: var(--muted); font-size: 0.93em; white-space: normal; }}
tr:has(+ tr > td.why) td {{ border-bottom: 0; padding-bottom: 0; }}
td.why {{ color: var(--muted); font-size: 0.93em; white-space: normal; padding-top: 2px; }}
td.why div {{ position: sticky; left: 10px; max-width: min(960px, calc(100vw - 84px)); overflow-wrap: anywhere; }}
td.value {{ white-space: normal; overflow-wrap: anywhere; }}
td.text {{ min-width: 240px; white-space: pre-line; overflow-wrap: anywhere; }}
td.best {{ background: var(--best); font-weight: 700; }}
td.off {{ background: var(--off); }}
td.far {{ background: var(--far); font-weight: 600; }}
.tiles {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(148px, 1fr)); gap: 12px; }}
.tile {{ border: 1px solid var(--edge); border-radius: 10px; padding: 10px; font-size: 12.5px; color: var(--muted); }}
.tile img {{ display: block; width: 100%; border-radius: 4px; margin-bottom: 6px; image-rendering: pixelated; }}
.tile span {{ display: flex; justify-content: space-between; gap: 6px; overflow-wrap: anywhere; }}
.tile b {{ color: var(--ink); font-weight: 600; text-align: right; font-variant-numeric: tabular-nums; }}
.tile.flagged {{ border-top: 3px solid var(--novel); }}
footer {{ color: var(--muted); font-size: 13px; }}
@media screen and (max-width: 760px) {{
  main {{ padding: 20px 12px 32px; }}
  .panel {{ padding: 16px 14px; }}
  .columns, .figures {{ grid-template-columns: minmax(0, 1fr); }}
  .figures > figure + figure {{ margin-top: 24px; }}
  /* Words have a line of their own below the numbers that they explain. */
  tr:has(> .words) {{ display: grid; grid-template-columns: 1fr auto; border-bottom: 1px solid var(--grid); }}
  tr:has(> .words) > * {{ border-bottom: 0; }}
  td.words {{ grid-column: 1 / -1; padding-top: 0; }}
  th.words {{ display: none; }}
}}
@media print {{
  body {{ background: none; font-size: 12px; }}
  main {{ max-width: none; padding: 0; }}
  .cards {{ grid-template-columns: repeat(4, minmax(0, 1fr)); }}
  table {{ font-size: 11px; }}
  th, td {{ padding: 3px 6px; }}
  .panel, .card {{ border-color: #bbbbbb; }}
  .card, figure, tr, .tile {{ break-inside: avoid; }}
  h2, h3, h4 {{ break-after: avoid; }}
  .scroll {{ overflow: visible; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
}}
"""
