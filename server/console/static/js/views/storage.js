// Where the bytes are: memory, tables, files of the log.
import { h, put } from "../dom.js";
import { admin } from "../api.js";
import { bytes, count, percent, rate } from "../format.js";
import { live, watch } from "../live.js";
import { badge, bar, figure, panel, refresh } from "../parts.js";
import { table } from "../table.js";
import { showTrouble } from "./activity.js";

export const title = "Storage";

export function mount(root, { who }) {
  const trouble = h("div", { hidden: true });
  const more = h("div", { hidden: true });
  const pool = h("dl", { class: "figures" });
  const used = h("div");
  const tables = table({
    label: "Tables",
    empty: "There are no tables that your account sees.",
    key: (t) => `${t.schema}\0${t.name}`,
    sort: "Total",
    columns: [
      { title: "Table", by: (t) => `${t.schema}.${t.name}`, cell: (t) => h("a", { href: `#/tables/${encodeURIComponent(t.schema)}/${encodeURIComponent(t.name)}` }, `${t.schema}.${t.name}`) },
      { title: "Rows (estimated)", num: true, by: (t) => Number(t.rows), cell: (t) => count(t.rows) },
      { title: "Data", num: true, by: (t) => Number(t.data_bytes), cell: (t) => bytes(t.data_bytes) },
      { title: "Indexes", num: true, by: (t) => Number(t.index_bytes), cell: (t) => bytes(t.index_bytes) },
      { title: "Total", num: true, by: size, cell: (t) => bytes(size(t)) },
    ],
  });
  const logs = table({
    label: "Files of the log",
    empty: "There are none yet.",
    key: (f) => f.name,
    columns: [
      { title: "File", kind: "tight", cell: (f) => f.name },
      { title: "Size", num: true, cell: (f) => bytes(f.bytes) },
      { title: "Entries", num: true, cell: (f) => span(f.first_index, f.last_index) },
      { title: "Transactions", num: true, cell: (f) => span(f.first_number, f.last_number) },
      { title: "State", cell: (f) => h("span", { class: "tools" }, badge(f.closed ? "" : "ok", f.closed ? "closed" : "written to"), f.needed ? badge("soft", "needed") : null) },
    ],
  });
  put(
    root,
    h("div", { class: "head" }, h("h1", {}, title), h("p", {}, `Of member ${who.node.member}.`)),
    trouble,
    panel("Buffer pool and disk", null, h("div", { class: "inside" }, pool, used)),
    panel("Largest tables", null, tables.root),
    more,
    panel("Files of the log", null, logs.root),
  );
  const stops = [
    watch((l) => l.numbers && figures(pool, used, l.numbers)),
    refresh(10000, async () => tables.update((await admin("ListTables", { limit: 200 }, { background: true })).tables), (e) => showTrouble(trouble, e)),
    refresh(5000, async () => logs.update((await admin("ListBinlogs", {}, { background: true })).files.reverse()), (e) => showTrouble(more, e)),
  ];
  return () => stops.forEach((stop) => stop());
}

const size = (t) => Number(t.data_bytes) + Number(t.index_bytes);
const span = (first, last) => (Number(last) < Number(first) ? "none" : `${count(first)} – ${count(last)}`);

function figures(pool, used, numbers) {
  const g = numbers.gauges;
  const page = g.Innodb_page_size || 16384;
  const recent = live.samples.slice(-60);
  const sum = (fn) => recent.reduce((a, s) => a + fn(s) * s.time, 0);
  const time = recent.reduce((a, s) => a + s.time, 0) || 1;
  const whole = g.Innodb_buffer_pool_pages_total;
  put(
    pool,
    figure("Buffer pool", bytes(whole * page)),
    figure("In use", bytes(g.Innodb_buffer_pool_pages_data * page), percent(g.Innodb_buffer_pool_pages_data, whole)),
    figure("Changed, not written yet", bytes(g.Innodb_buffer_pool_pages_dirty * page)),
    figure("Statements without a read from disk", withoutRead(recent), "of the last minute, at least"),
    figure("Pages read from disk", rate(sum((s) => s.reads) / time), "over a minute"),
    figure("Pages written", rate(sum((s) => s.writes) / time), "over a minute"),
    figure("Tablespaces", bytes(g.Innodb_tablespace_bytes), `${bytes(g.Innodb_undo_tablespace_bytes)} of undo`),
    figure("Log", bytes(g.Binlog_file_bytes), `${count(g.Binlog_files)} ${g.Binlog_files === 1 ? "file" : "files"}`),
    figure("Redo to be read after a crash", bytes(g.log_lsn_checkpoint_age), `of ${bytes(g.log_capacity)}`),
    figure("Transactions not purged", count(g.trx_rseg_history_len)),
  );
  put(used, bar(g.Innodb_buffer_pool_pages_data, whole, "Buffer pool in use", 2, 2));
}

/** withoutRead is the part of statements that found all pages in memory, if each other one read one page only. */
function withoutRead(samples) {
  const statements = samples.reduce((a, s) => a + s.statementRate * s.time, 0);
  const reads = samples.reduce((a, s) => a + s.reads * s.time, 0);
  return statements < 1 ? "–" : percent(Math.max(0, statements - reads), statements);
}
