"""How the HTML report looks, by light and by dark, on a screen and on paper."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #15181d; --dim: #5b6470; --line: #d9dee5;
  --grid: #e7eaef; --band: #e3ecf7; --base: #7a8594; --accent: #1f6fc4;
  --good: #1a7a3c; --bad: #b3261e; --same: #2a5fa8; --warn: #8a5a00; --warn-page: #fff4d6;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1d2126; --ink: #e8ebef; --dim: #9aa4b1; --line: #363d46;
    --grid: #2a3037; --band: #24374d; --base: #8d98a6; --accent: #5aa2ee;
    --good: #5cc27f; --bad: #ff8a80; --same: #82b4f5; --warn: #f0c060; --warn-page: #3a2f14;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 24px 20px 64px; max-width: 1280px; background: var(--page);
  color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", "Liberation Sans", sans-serif;
}
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 36px 0 10px; }
h3 { font-size: 15px; margin: 0 0 6px; }
p { margin: 6px 0; max-width: 78ch; }
ul { margin: 8px 0; padding-left: 20px; }
li { margin: 2px 0; max-width: 90ch; }
code { font: 13px ui-monospace, "DejaVu Sans Mono", monospace; }
.dim { color: var(--dim); }
.card {
  background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 14px 16px; margin: 12px 0;
}
.warn { background: var(--warn-page); border-color: var(--warn); }
.warn h2 { margin-top: 0; color: var(--warn); }
.primary { display: flex; gap: 6px 18px; align-items: baseline; flex-wrap: wrap; }
.primary p { margin: 0; }
.verdict { font-weight: 650; white-space: nowrap; }
.primary .verdict { font-size: 20px; }
.better { color: var(--good); } .worse { color: var(--bad); } .equivalent { color: var(--same); }
.inconclusive, .insufficient, .none { color: var(--dim); }
.grey { opacity: 0.55; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 10px 6px 0; text-align: left; vertical-align: top; }
th {
  font-weight: 600; color: var(--dim); font-size: 13px; border-bottom: 1px solid var(--line);
  vertical-align: bottom;
}
td { border-bottom: 1px solid var(--grid); }
tr:last-child td { border-bottom: 0; }
td.n, th.n { text-align: right; }
td.n { white-space: nowrap; }
td .why { display: block; color: var(--dim); font-size: 13px; min-width: 22ch; max-width: 62ch; }
.raw td, .raw th { font-size: 12.5px; padding: 3px 12px 3px 0; white-space: nowrap; }
.lost td { color: var(--bad); }
.strips { display: grid; grid-template-columns: repeat(auto-fill, minmax(500px, 1fr)); gap: 12px; }
.strips .card { margin: 0; }
@media (max-width: 620px) { .strips { grid-template-columns: 1fr; } }
svg { display: block; max-width: 100%; height: auto; }
.plot svg { max-width: none; }
svg text { fill: var(--dim); font: 12px system-ui, "Liberation Sans", sans-serif; }
svg .name { fill: var(--ink); }
svg .band { fill: var(--band); }
svg .grid { stroke: var(--grid); stroke-width: 1; }
svg .zero { stroke: var(--base); stroke-width: 1; stroke-dasharray: 3 3; }
svg .reach { stroke: var(--accent); stroke-width: 2; fill: none; }
svg .dot { fill: var(--accent); stroke: var(--card); stroke-width: 1; }
svg .base .dot { fill: var(--base); }
svg .box { stroke: var(--accent); stroke-width: 10; opacity: 0.18; }
svg .base .box { stroke: var(--base); }
svg .middle { stroke: var(--accent); stroke-width: 2.5; }
svg .base .middle { stroke: var(--base); }
svg .limit { fill: none; stroke: var(--accent); stroke-width: 1.5; }
svg .base .limit { stroke: var(--base); }
details { margin: 10px 0; }
summary { cursor: pointer; font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 4px 0; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
@media print { body { background: none; max-width: none; } .card { break-inside: avoid; } }
"""
