// Schemas, tables, and what is in them.
import { h, put } from "../dom.js";
import { post } from "../api.js";
import { bytes, count } from "../format.js";
import { badge, panel } from "../parts.js";
import { grid } from "../grid.js";
import { showTrouble } from "./activity.js";

export const title = "Tables";

const system = ["information_schema", "mysql", "performance_schema", "sys"];

export function mount(root, { path }) {
  let [schema, table] = path;
  const trouble = h("div", { hidden: true });
  const choice = h("select", { "aria-label": "Schema", onchange: () => (location.hash = `#/tables/${encodeURIComponent(choice.value)}`) });
  const filter = h("input", { type: "search", placeholder: "a part of the name", "aria-label": "Search tables", oninput: later(() => listTables()) });
  const list = h("ul");
  const detail = h("div");
  put(
    root,
    h("div", { class: "head" }, h("h1", {}, title), h("p", {}, "As this node has them.")),
    trouble,
    h("div", { class: "browser" }, h("nav", { class: "panel list", "aria-label": "Tables" }, h("div", { class: "inside" }, choice, filter), list), detail),
  );
  const failed = (e) => showTrouble(trouble, e);

  async function listSchemas() {
    const out = await post("browse/schemas");
    const names = out.rows.map((r) => r[0]);
    schema ??= names.find((n) => !system.includes(n)) ?? names[0];
    put(choice, names.map((n) => h("option", { value: n }, n)));
    choice.value = schema ?? "";
    await listTables();
    if (table === undefined) put(detail, h("div", { class: "panel" }, h("p", { class: "empty" }, list.children.length ? "Choose a table." : "")));
    else await showTable(detail, schema, table, failed);
  }

  async function listTables() {
    const part = filter.value;
    const out = await post("browse/tables", { schema, filter: part });
    if (part !== filter.value) return; // another answer is on its way
    put(
      list,
      out.rows.length
        ? out.rows.map(([name, kind, rows, data, index]) =>
            h("li", {}, h("a", { href: `#/tables/${encodeURIComponent(schema)}/${encodeURIComponent(name)}`, "aria-current": name === table ? "true" : null }, h("span", {}, name), h("small", {}, kind === "BASE TABLE" ? bytes(Number(data) + Number(index)) : kind === "VIEW" ? "view" : ""))))
        : h("li", { class: "empty" }, "No table is seen here."),
      out.more ? h("li", { class: "empty" }, "There are more: search for a part of the name.") : null,
    );
  }
  listSchemas().catch(failed);
}

function later(fn) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(fn, 250);
  };
}

async function showTable(root, schema, table, failed) {
  const about = await post("browse/table", { schema, table });
  const inside = h("div", { role: "tabpanel" });
  const tabs = { Rows: () => showRows(inside, schema, table, failed), Columns: () => put(inside, columns(about.columns)), Indexes: () => put(inside, indexes(about.indexes)) };
  if (about.create?.rows?.length) tabs.Definition = () => put(inside, h("div", { class: "inside" }, h("pre", {}, about.create.rows[0][1])));
  const buttons = Object.keys(tabs).map((name) => h("button", { role: "tab", onclick: () => choose(name) }, name));
  function choose(name) {
    buttons.forEach((b) => b.setAttribute("aria-selected", String(b.textContent === name)));
    tabs[name]();
  }
  put(root, panel(`${schema}.${table}`, h("div", { class: "tabs", role: "tablist", "aria-label": "Of the table" }, buttons), inside));
  choose("Rows");
}

/** showRows shows page after page in the order of the key. */
function showRows(root, schema, table, failed) {
  const before = []; // where earlier pages began
  let from = {};
  let passed = 0; // rows before the page: one of long values is shorter
  async function load() {
    const page = await post("browse/rows", { schema, table, limit: 50, ...from });
    const first = passed + 1;
    const onward = () => {
      before.push([from, passed]);
      passed += page.count;
      from = page.next ? { after: page.next } : { offset: passed };
      load().catch(failed);
    };
    const back = () => {
      [from, passed] = before.pop();
      load().catch(failed);
    };
    put(
      root,
      page.count ? grid(page, `Rows of ${schema}.${table}`) : h("p", { class: "empty" }, "The table is empty."),
      h("div", { class: "inside tools" }, h("button", { onclick: back, disabled: before.length === 0 }, "Back"), h("button", { onclick: onward, disabled: !page.more }, "On"), h("span", { class: "muted small" }, page.count ? `rows ${count(first)} to ${count(first + page.count - 1)}` : "", page.key ? `, by ${page.key.join(", ")}` : ", in no order: there is no primary key to read by")),
    );
  }
  load().catch(failed);
}

function columns(result) {
  const row = ([name, type, nullable, standard, extra, key, collation, comment]) =>
    h("tr", {}, h("td", { class: "tight" }, h("code", {}, name), " ", key === "PRI" ? badge("soft", "primary") : key === "UNI" ? badge("", "unique") : key === "MUL" ? badge("", "index") : null), h("td", {}, h("code", {}, type)), h("td", {}, nullable === "YES" ? "NULL" : "NOT NULL"), h("td", {}, standard === null ? h("span", { class: "null" }, "NULL") : h("code", {}, standard)), h("td", {}, extra), h("td", {}, collation ?? ""), h("td", {}, comment));
  return listing("Columns", ["Column", "Type", "May be", "Default", "Extra", "Collation", "Comment"], result.rows.map(row));
}

function indexes(result) {
  const byName = new Map();
  for (const [name, nonUnique, , column, expression, part, collation, kind, visible, cardinality] of result.rows) {
    const one = byName.get(name) ?? { columns: [], unique: nonUnique === "0", kind, visible, cardinality };
    byName.set(name, one);
    one.columns.push(`${column ?? `(${expression})`}${part ? `(${part})` : ""}${collation === "D" ? " desc" : ""}`);
    one.cardinality = cardinality;
  }
  const row = ([name, x]) => h("tr", {}, h("td", { class: "tight" }, h("code", {}, name), " ", x.unique ? badge("soft", "unique") : null, x.visible === "NO" ? badge("warn", "invisible") : null), h("td", {}, h("code", {}, x.columns.join(", "))), h("td", {}, x.kind), h("td", { class: "num" }, count(x.cardinality)));
  return byName.size ? listing("Indexes", ["Index", "Columns", "Kind", "Distinct (estimated)"], [...byName].map(row), 3) : h("p", { class: "empty" }, "The table has no index.");
}

function listing(label, heads, rows, number = -1) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, h("table", {}, h("caption", { class: "unseen" }, label), h("thead", {}, h("tr", {}, heads.map((x, i) => h("th", { scope: "col", class: i === number ? "num" : null }, x)))), h("tbody", {}, rows)));
}
