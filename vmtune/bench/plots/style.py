"""How a picture of a run looks: light, dark and on paper. The palette is Okabe and Ito's, which
people with any colour vision can tell apart, adjusted to both grounds."""

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #ffffff; --panel: #f5f6f8; --line: #d5d8de; --grid: #e9ebef;
  --text: #16181d; --soft: #5a6170;
  --c1: #0067b1; --c2: #c75000; --c3: #00805e; --c4: #a8326e; --c5: #8a6d00; --c6: #5b4bb5;
  --c8: #5a6170;
  --good: #00704f; --bad: #b3261e; --warn: #8a5a00;
  --silence: #d92d2026; --silence-text: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #15171c; --panel: #1e2128; --line: #3a3f4b; --grid: #282c35;
    --text: #eceef2; --soft: #a3abba;
    --c1: #58b4f0; --c2: #f28e4c; --c3: #3fc79a; --c4: #e58bb9; --c5: #e0c04a; --c6: #a99bf5;
    --c8: #a3abba;
    --good: #4fd0a0; --bad: #ff8a80; --warn: #f0b44c;
    --silence: #ff6b6133; --silence-text: #ff8a80;
  }
}
@media print {
  :root {
    --ground: #ffffff; --panel: #ffffff; --line: #b9bdc6; --grid: #e4e6ea;
    --text: #000000; --soft: #444444;
    --c1: #0067b1; --c2: #c75000; --c3: #00805e; --c4: #a8326e; --c5: #8a6d00; --c6: #5b4bb5;
    --c8: #444444;
    --good: #00704f; --bad: #b3261e; --warn: #8a5a00;
    --silence: #d92d2026; --silence-text: #b3261e;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 24px 28px 40px; max-width: 1240px;
  background: var(--ground); color: var(--text);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
}
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 14px; }
h1 { font-size: 24px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 30px 0 10px; }
p { margin: 6px 0; max-width: 80ch; }
.state { font-weight: 650; padding: 1px 10px; border: 1.5px solid; border-radius: 999px; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.soft { color: var(--soft); }
.failure {
  border-left: 4px solid currentColor; background: var(--panel); padding: 8px 14px; margin: 14px 0;
  max-width: none; white-space: pre-wrap; overflow-wrap: anywhere;
}
.failure span { color: var(--text); }
.tiles { display: flex; flex-wrap: wrap; gap: 10px; margin: 18px 0 16px; padding: 0; }
.tile {
  flex: 1 1 138px; background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  padding: 8px 12px 9px; list-style: none;
}
.tile b { display: block; font-size: 20px; font-weight: 650; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 12.5px; line-height: 1.25; display: block; }
figure { margin: 0; overflow-x: auto; }
svg { display: block; width: 100%; min-width: 640px; height: auto; }
figcaption { color: var(--soft); font-size: 13px; margin-top: 6px; }
svg text { fill: var(--text); font-size: 12px; }
svg .title { font-size: 13px; font-weight: 650; }
svg .unit, svg .tick, svg .label { fill: var(--soft); font-weight: 400; }
svg .tick { font-size: 11px; font-variant-numeric: tabular-nums; }
svg .halo { paint-order: stroke; stroke: var(--ground); stroke-width: 3px; stroke-linejoin: round; }
svg .mid { text-anchor: middle; } svg .end { text-anchor: end; }
svg .name { font-size: 11.5px; font-weight: 600; }
svg .switching { fill: var(--c6); } svg .stopped { fill: var(--silence-text); }
.grid { stroke: var(--grid); } .axis { stroke: var(--line); fill: none; }
.phase { fill: var(--panel); stroke: var(--line); }
.phase.now { fill: var(--c1); fill-opacity: .16; stroke: var(--c1); }
.aside { fill: var(--soft); fill-opacity: .06; }
.iteration { stroke: var(--soft); stroke-opacity: .38; stroke-width: .8; }
.silence { fill: var(--silence); }
.downtime { fill: var(--c6); fill-opacity: .18; }
.switch { stroke: var(--c6); stroke-width: 1.4; stroke-dasharray: 5 3; fill: none; }
.step { stroke: var(--c4); stroke-width: 1.4; fill: none; }
circle.step { fill: var(--ground); } svg .stepnumber { font-size: 10.5px; font-weight: 650; }
.line, .dashed, .rule { fill: none; stroke-width: 1.7; stroke-linejoin: round; }
.dashed { stroke-dasharray: 6 3; } .rule { stroke-dasharray: 2 3; stroke-width: 1.3; }
.dots { fill: none; stroke-linecap: round; }
.area, .band { stroke: none; fill-opacity: .28; } .stack { stroke: none; fill-opacity: .62; }
.c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); } .c3 { stroke: var(--c3); }
.c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); } .c6 { stroke: var(--c6); }
.c8 { stroke: var(--c8); }
.area.c1, .band.c1, .stack.c1 { fill: var(--c1); stroke: none; }
.area.c2, .band.c2, .stack.c2 { fill: var(--c2); stroke: none; }
.area.c3, .band.c3, .stack.c3 { fill: var(--c3); stroke: none; }
.area.c4, .band.c4, .stack.c4 { fill: var(--c4); stroke: none; }
.area.c5, .band.c5, .stack.c5 { fill: var(--c5); stroke: none; }
.area.c6, .band.c6, .stack.c6 { fill: var(--c6); stroke: none; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; vertical-align: top; padding: 5px 14px 5px 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 600; font-size: 13px; }
thead th { white-space: nowrap; }
tbody th { color: var(--text); font-weight: 500; min-width: 11em; }
th.figure { text-align: right; }
td.figure { font-variant-numeric: tabular-nums; white-space: nowrap; text-align: right; }
td.short { white-space: nowrap; }
td small { color: var(--soft); font-size: 12.5px; }
tr.group th { padding-top: 14px; color: var(--soft); font-size: 13px; font-weight: 650; }
.lack { font-size: 13px; max-width: none; }
.facts { columns: 2 440px; column-gap: 36px; margin: 0; font-size: 14px; }
.facts div { display: flex; gap: 14px; padding: 4px 0; border-bottom: 1px solid var(--line);
  break-inside: avoid; }
.facts dt { flex: 0 0 46%; color: var(--soft); }
.facts dd { margin: 0; flex: 1; overflow-wrap: anywhere; }
footer { margin-top: 34px; color: var(--soft); font-size: 12.5px; }
@media print {
  body { padding: 0; max-width: none; font-size: 11px; line-height: 1.35;
    print-color-adjust: exact; }
  h1 { font-size: 19px; } h2 { font-size: 14px; margin: 18px 0 6px; break-after: avoid; }
  p { margin: 3px 0; } .failure { padding: 4px 10px; margin: 8px 0; }
  .tiles { gap: 6px; margin: 10px 0; } .tile { flex-basis: 84px; padding: 4px 8px 5px; }
  .tile b { font-size: 14px; } .tile span { font-size: 10px; }
  svg { min-width: 0; } svg, tr, .tile { break-inside: avoid; }
  table, .facts { font-size: 10.5px; } th, td small, figcaption, .lack { font-size: 10px; }
  th, td { padding: 3px 10px 3px 0; } .facts { columns: 2; } .facts div { padding: 2px 0; }
  tr.group th { font-size: 10.5px; padding-top: 8px; }
  @page { margin: 14mm; }
}
"""
