// Rows of a result.
import { h } from "./dom.js";
import { bytes } from "./format.js";

/** grid shows the columns and rows of an answer; values are texts, of binary columns hexadecimal. */
export function grid(result, label) {
  const cut = new Map((result.cut ?? []).map((c) => [`${c.row}/${c.column}`, c.bytes]));
  const head = h("tr", {}, result.columns.map((c) => h("th", { scope: "col", class: c.number ? "num" : null }, h("span", { class: c.key ? "key" : null, title: c.key ? "of the primary key" : null }, c.name), h("small", {}, c.type))));
  const body = result.rows.map((row, r) => h("tr", {}, row.map((v, i) => cell(v, result.columns[i], cut.get(`${r}/${i}`)))));
  return h("div", { class: "values" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, h("table", {}, h("caption", { class: "unseen" }, label), h("thead", {}, head), h("tbody", {}, body))));
}

const shown = 400; // characters; more of them are in the title

function cell(v, column, size) {
  const kind = column.number ? "num" : null;
  if (v === null) return h("td", { class: kind }, h("span", { class: "null" }, "NULL"));
  const text = column.binary ? `0x${v}` : v;
  const more = size ? ` … ${bytes(size)} in all` : text.length > shown ? " …" : "";
  return h("td", { class: kind, title: text.length > 24 ? text.slice(0, 4096) : null }, text.slice(0, shown), more ? h("span", { class: "null" }, more) : null);
}
