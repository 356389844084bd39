// Statements that differ in their values only, by what they cost.
import { h, put } from "../dom.js";
import { admin } from "../api.js";
import { clock, count, seconds } from "../format.js";
import { bar, panel, refresh } from "../parts.js";
import { table } from "../table.js";
import { showTrouble } from "./activity.js";

export const title = "Top SQL";

const orders = [
  ["ADMIN_STATEMENT_ORDER_UNSPECIFIED", "total time"],
  ["ADMIN_STATEMENT_ORDER_AVERAGE", "average time"],
  ["ADMIN_STATEMENT_ORDER_MAX", "longest"],
  ["ADMIN_STATEMENT_ORDER_COUNT", "count"],
  ["ADMIN_STATEMENT_ORDER_ROWS_EXAMINED", "rows read"],
  ["ADMIN_STATEMENT_ORDER_ERRORS", "errors"],
];
const us = (n) => seconds(Number(n) / 1e6);

export function mount(root, { who }) {
  const trouble = h("div", { hidden: true });
  const order = h("select", { onchange: () => load(false).catch((e) => showTrouble(trouble, e)) }, orders.map(([value, name]) => h("option", { value }, name)));
  const total = h("span", { class: "muted" });
  let all = 1;
  const list = table({
    label: "Statements",
    empty: "No statement has been run here yet.",
    key: (s) => `${s.schema}/${s.digest}`,
    columns: [
      { title: "Statement", kind: "text", cell: (s) => s.text || "(all others)" },
      { title: "Schema", kind: "tight", cell: (s) => s.schema },
      { title: "Count", num: true, cell: (s) => count(s.count) },
      { title: "Total", num: true, cell: (s) => h("span", {}, us(s.total_us), bar(Number(s.total_us), all, `${((100 * Number(s.total_us)) / all).toFixed(1)} % of the time of those shown`, 2, 2)) },
      { title: "Average", num: true, cell: (s) => us(Number(s.total_us) / Math.max(1, Number(s.count))) },
      { title: "Longest", num: true, cell: (s) => us(s.max_us) },
      { title: "Rows read", num: true, cell: (s) => count(s.rows_examined) },
      { title: "Sent", num: true, cell: (s) => count(s.rows_sent) },
      { title: "Changed", num: true, cell: (s) => count(s.rows_affected) },
      { title: "Errors", num: true, cell: (s) => count(s.errors) },
      { title: "Last run", kind: "tight", cell: (s) => clock(s.last_seen_us) },
    ],
  });
  put(
    root,
    h("div", { class: "head" }, h("h1", {}, title), h("p", {}, `What statements have cost on member ${who.node.member} since it was started. Values are not kept.`)),
    trouble,
    panel("Statements by digest", h("div", { class: "tools" }, total, h("label", {}, "first by", order)), list.root),
  );
  async function load(background = true) {
    const out = await admin("ListStatements", { order: order.value, limit: 100 }, { background });
    all = out.statements.reduce((sum, s) => sum + Number(s.total_us), 0) || 1;
    list.update(out.statements);
    put(total, `${count(out.statements.length)} of ${count(out.total)}`);
  }
  return refresh(5000, load, (e) => showTrouble(trouble, e));
}
