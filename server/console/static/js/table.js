// Tables whose rows are updated in place, so that neither the focus nor what is selected is lost.
import { h, put, text } from "./dom.js";

/**
 * table makes one. A column has title, cell(row) (a text or an element), and may have num (shown
 * to the right), kind (a class), by(row) (what it is sorted by), once (its cell never changes).
 * key(row) tells rows apart.
 */
export function table({ label, columns, key, empty, sort = null, descending = true }) {
  let rows = [];
  let shown = new Map();
  let order = { by: sort, descending };
  const heads = columns.map((c) => {
    const head = h("th", { scope: "col", class: c.num ? "num" : null });
    if (!c.by) return put(head, c.title);
    return put(head, h("button", { type: "button", onclick: () => sortBy(c) }, c.title));
  });
  const body = h("tbody");
  const nothing = h("p", { class: "empty" }, empty);
  const scroll = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, h("table", {}, h("caption", { class: "unseen" }, label), h("thead", {}, h("tr", {}, heads)), body));
  const root = h("div", {}, scroll, nothing);

  function sortBy(c) {
    order = order.by === c.title ? { by: c.title, descending: !order.descending } : { by: c.title, descending: Boolean(c.num) };
    update(rows);
  }

  function update(list) {
    rows = list;
    const c = columns.find((one) => one.title === order.by);
    const sorted = c ? [...list].sort((a, b) => compare(c.by(a), c.by(b)) * (order.descending ? -1 : 1)) : list;
    columns.forEach((one, i) => {
      if (one === c) heads[i].setAttribute("aria-sort", order.descending ? "descending" : "ascending");
      else heads[i].removeAttribute("aria-sort");
    });
    const next = new Map();
    for (const row of sorted) {
      const k = String(key(row));
      const tr = shown.get(k) ?? h("tr", {}, columns.map((one) => h("td", { class: [one.num ? "num" : "", one.kind ?? ""].join(" ").trim() || null })));
      columns.forEach((one, i) => place(tr.children[i], one, row, shown.has(k)));
      next.set(k, tr);
    }
    shown = next;
    const wanted = [...next.values()];
    if (wanted.length !== body.children.length || wanted.some((tr, i) => body.children[i] !== tr)) reorder(body, wanted);
    nothing.hidden = list.length > 0;
    scroll.hidden = list.length === 0;
  }

  update([]);
  return { root, update };
}

function place(td, column, row, again) {
  if (again && column.once) return;
  const v = column.cell(row);
  if (v instanceof Node) put(td, v);
  else if (column.kind === "text") {
    if (td.textContent !== String(v ?? "")) put(td, h("span", { title: v }, v ?? ""));
  } else text(td, String(v ?? ""));
}

/** reorder makes the rows those that are wanted, and moves as few as it can. */
function reorder(body, wanted) {
  const stay = new Set(wanted);
  for (const tr of [...body.children]) if (!stay.has(tr)) tr.remove();
  wanted.forEach((tr, i) => {
    if (body.children[i] !== tr) body.insertBefore(tr, body.children[i] ?? null);
  });
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en");
}
