"""The style of the page: light and dark, on a wide screen, a narrow one and paper."""

STYLE = """
:root{color-scheme:light dark;--ink:#1f2733;--soft:#667085;--paper:#fff;--card:#f5f7fa;
  --edge:#dfe4ec;--link:#1d5fa8;--bad:#a52714;--badcard:#fdecea}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#9aa4b5;--paper:#0f141a;
  --card:#171d26;--edge:#2c3542;--link:#8abaf2;--bad:#ffb3a6;--badcard:#3a1d1a}
}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,
  "Segoe UI",sans-serif}
main{max-width:1080px;margin:0 auto;padding:24px 20px 64px}
h1{font-size:28px;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:21px;margin:0 0 12px;overflow-wrap:anywhere}
h3{font-size:16px;margin:28px 0 8px}
p{margin:6px 0;overflow-wrap:anywhere}
a{color:var(--link)}
section{border-top:1px solid var(--edge);margin-top:36px;padding-top:24px}
nav{display:flex;flex-wrap:wrap;gap:6px 18px;margin-top:16px}
.soft{color:var(--soft)}
.note{background:var(--card);border-left:3px solid var(--edge);padding:6px 10px}
.cards{list-style:none;display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));
  gap:10px;margin:18px 0;padding:0}
.cards li{background:var(--card);border:1px solid var(--edge);border-radius:8px;
  padding:10px 12px;font-size:13px;color:var(--soft)}
.cards b{display:block;font-size:20px;color:var(--ink);font-variant-numeric:tabular-nums}
.rules{margin:0 0 8px;padding-left:20px}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:2px 24px;margin:0}
dl div{display:flex;gap:10px;border-bottom:1px solid var(--edge);padding:3px 0;min-width:0}
dt{color:var(--soft);flex:0 0 46%;overflow-wrap:anywhere}
dd{margin:0;overflow-wrap:anywhere;min-width:0}
.wide{overflow-x:auto}
figure{margin:12px 0 18px}
figcaption{font-size:13px;color:var(--soft);overflow-wrap:anywhere}
figcaption b{color:var(--ink)}
svg.plot{display:block;width:100%;min-width:640px;max-width:860px;height:auto}
table{border-collapse:collapse;width:100%;font-size:13px}
th{text-align:left;color:var(--soft);font-weight:600;white-space:nowrap}
th,td{padding:6px 10px 6px 0;border-bottom:1px solid var(--edge);vertical-align:top}
td{min-width:84px;max-width:420px;overflow-wrap:anywhere}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
code{font:12px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
  background:var(--card);border-radius:4px;padding:1px 4px;overflow-wrap:anywhere}
.command{display:inline-block;margin-top:3px;user-select:all}
mark{background:var(--badcard);color:var(--bad);border-radius:4px;padding:0 5px;
  white-space:nowrap}
@media (max-width:560px){main{padding:16px 12px 40px}
h1{font-size:23px}
dl{grid-template-columns:1fr}
.cards{grid-template-columns:1fr 1fr}
table{min-width:600px}
}
@media print{:root{--ink:#000;--soft:#444;--paper:#fff;--card:#fff;--edge:#bbb;--link:#000;
  --bad:#8a1c0c;--badcard:#fff}
svg.plot{--ink:#000;--soft:#444;--grid:#ddd;--line:#1d5fa8;--fill:#b7cde6;--bad:#b3261e;
  --limit:#7a5200;--back:#fff;min-width:0}
body{font-size:11px}
main{max-width:none;padding:0}
nav{display:none}
.wide{overflow:visible}
table{font-size:9px;min-width:0}
code{font-size:8px}
td{min-width:0}
tr,figure{break-inside:avoid}
h2,h3{break-after:avoid}
}
"""
