"""The page's style sheet: light and dark, with a colour for each of eight members."""

COLOURS = 8

STYLE = """
:root{color-scheme:light dark;--paper:#fcfcfb;--ink:#1a1a19;--soft:#6b6a66;--rule:#e3e2dd;
  --card:#ffffff;--bad:#d03b3b;--warn:#b26a00;--good:#2d7d32;--line:#2a78d6;--quiet:#b9b8b2;
  --c0:#2a78d6;--c1:#1baf7a;--c2:#eda100;--c3:#4a3aa7;--c4:#e87ba4;--c5:#008300;--c6:#eb6834;
  --c7:#7a5c3e}
@media (prefers-color-scheme:dark){:root{--paper:#1a1a19;--ink:#f2f1ed;--soft:#a3a29c;
  --rule:#383835;--card:#232321;--bad:#e66767;--warn:#e0a63f;--good:#6cc070;--line:#5b9be6;
  --quiet:#5c5b57;--c0:#3987e5;--c1:#199e70;--c2:#c98500;--c3:#9085e9;--c4:#d55181;--c5:#4c9a4c;
  --c6:#d95926;--c7:#a98a6a}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1120px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:24px;margin:0 0 4px}
h2{font-size:19px;margin:36px 0 4px}
h3{font-size:15px;margin:26px 0 6px}
p{margin:4px 0}
.soft{color:var(--soft)}
.tiles{display:flex;flex-wrap:wrap;gap:10px;margin:14px 0}
.tile{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:10px 14px;
  min-width:132px}
.tile b{display:block;font-size:21px;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:13px}
.bad b{color:var(--bad)}
.warn b{color:var(--warn)}
.good b{color:var(--good)}
figure{margin:8px 0;background:var(--card);border:1px solid var(--rule);border-radius:8px;
  padding:12px}
figcaption{color:var(--soft);font-size:13px;margin-top:8px}
svg{width:100%;height:auto;display:block;font:11px system-ui,sans-serif}
svg text{fill:var(--ink)}
svg text.on{fill:#fff;font-weight:600}
svg text.small{fill:var(--soft)}
.grid{stroke:var(--rule);stroke-width:1}
.mark{stroke:var(--ink);stroke-dasharray:3 3;opacity:.55}
.line{fill:none;stroke:var(--line);stroke-width:2;stroke-linejoin:round}
.dot{fill:var(--line)}
.spike{fill:var(--bad);opacity:.14}
.absent{fill:var(--quiet);opacity:.45}
.unowned{fill:var(--bad)}
.shared{fill:none;stroke:var(--ink);stroke-width:1.6}
.moved{fill:var(--c0)}
.minimum{fill:var(--quiet)}
.again{opacity:.6}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;margin-top:8px}
.legend i{display:inline-block;width:12px;height:12px;border-radius:2px;margin-right:6px;
  vertical-align:-1px}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:13px;width:100%}
th{text-align:left;color:var(--soft);font-weight:500}
td,th{padding:3px 14px 3px 0;white-space:nowrap;border-bottom:1px solid var(--rule)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
details summary{cursor:pointer;color:var(--soft);font-size:13px;margin:8px 0}
"""
STYLE += "".join(
    f".c{n}{{fill:var(--c{n})}}.k{n}{{background:var(--c{n})}}\n" for n in range(COLOURS)
)
