// Statements by hand. They only read, unless writes are allowed in this tab of the browser.
import { h, put, say } from "../dom.js";
import { post } from "../api.js";
import { count, seconds } from "../format.js";
import { live } from "../live.js";
import { badge, note, problem } from "../parts.js";
import { consoleOf } from "../members.js";
import { grid } from "../grid.js";

export const title = "SQL";

// What the tab remembers while other views are looked at, of the account that is signed in.
const fresh = { account: null, text: "SELECT VERSION(), NOW();", schema: "", rows: "1000", limit: "30000", writes: false, running: null, out: null, draw: null };
let kept = { ...fresh };

/** markWrites shows on every view that writes are allowed. */
function markWrites() {
  put(document.getElementById("marks"), kept.writes ? h("a", { class: "badge mark-writes", href: "#/sql" }, "writes are allowed") : null);
}

/** forget is for who signs in next: somebody else finds no text either. A run that has not ended ends for nobody. */
export function forget() {
  kept = { ...kept, writes: false, running: null, out: null };
}

export function mount(root, { who }) {
  if (kept.account !== who.account) kept = { ...fresh, account: who.account };
  const editor = h("textarea", { "aria-label": "Statements", spellcheck: "false", autocapitalize: "none", value: kept.text, oninput: () => (kept.text = editor.value), onkeydown: keys });
  const schema = h("input", { class: "schema", list: "schemas", value: kept.schema, autocomplete: "off", spellcheck: "false", onchange: () => (kept.schema = schema.value) });
  const schemas = h("datalist", { id: "schemas" });
  const rows = choose(["100", "1000", "10000"], count, "rows");
  const limit = choose(["5000", "30000", "120000", "600000"], (ms) => seconds(ms / 1000), "limit");
  const writes = h("input", { type: "checkbox", role: "switch", checked: kept.writes, onchange: allow });
  const run = h("button", { class: "primary", onclick: start, title: "Ctrl and Enter" });
  const cancel = h("button", { onclick: stop, disabled: true }, "Cancel");
  const box = h("section", { class: "panel", "aria-label": "Statements" }, h("div", { class: "inside editor" }, editor, h("div", { class: "tools" }, h("label", {}, "Schema", schema), schemas, h("label", {}, "Rows", rows), h("label", {}, "Time", limit), h("label", { class: "switch" }, writes, "Allow writes"), h("div", { class: "end" }, cancel, run))));
  const results = h("div", { class: "results", "aria-live": "polite" });
  put(root, h("div", { class: "head" }, h("h1", {}, title), h("p", {}, `As ${who.account} on member ${who.node.member}. Each run is a session of its own.`)), box, results);

  function choose(values, show, name) {
    const s = h("select", { onchange: () => (kept[name] = s.value) }, values.map((v) => h("option", { value: v }, show(Number(v)))));
    s.value = kept[name];
    return s;
  }

  function mode() {
    box.classList.toggle("writes", kept.writes);
    put(run, kept.writes ? "Run, may write" : "Run");
    run.className = kept.writes ? "danger" : "primary";
    markWrites();
  }

  function allow() {
    kept.writes = writes.checked;
    say(kept.writes ? "Writes are allowed in this tab." : "This tab only reads.");
    mode();
  }

  function keys(e) {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      start();
    }
  }

  async function start() {
    if (kept.running || !editor.value.trim()) return;
    const mine = kept;
    const id = crypto.randomUUID?.() ?? String(Math.random());
    const wrote = kept.writes;
    mine.running = id;
    draw();
    try {
      const out = await post("sql/run", { id, text: editor.value, schema: schema.value, write: wrote, rows: Number(rows.value), limit_ms: Number(limit.value) });
      mine.out = { out, wrote };
    } catch (e) {
      mine.out = { trouble: e };
    }
    mine.running = null;
    mine.draw(); // of the view that is there by now
  }

  /** stop asks until the run is over: the node may not have begun it yet. */
  async function stop() {
    const id = kept.running;
    cancel.disabled = true;
    try {
      while (kept.running === id && !(await post("sql/cancel", { id })).found) await new Promise((done) => setTimeout(done, 100));
    } catch (e) {
      put(results, problem(e));
    }
  }

  /** draw shows the run that goes on, or what the last one gave. */
  function draw() {
    run.disabled = Boolean(kept.running);
    cancel.disabled = !kept.running;
    if (kept.running) put(results, h("p", { class: "muted" }, "Running…"));
    else if (kept.out) put(results, kept.out.trouble ? problem(kept.out.trouble) : shown(kept.out.out, kept.out.wrote));
  }

  kept.draw = draw;
  mode();
  draw();
  post("browse/schemas").then((out) => put(schemas, out.rows.map((r) => h("option", { value: r[0] }))), () => {});
}

/** shown are the results of a run. */
function shown(out, wrote) {
  const parts = (out.results ?? []).map((r, i) => one(r, i, out.results.length));
  if (out.error) parts.push(failure(out.error, wrote));
  if (out.full) parts.push(note("warn", "There is more", "The result was cut off where as much was there as was asked for; what followed was not run."));
  if (out.rolled_back) parts.push(note("warn", "The transaction was rolled back", "It was still open at the end: a run has a session of its own. Put BEGIN and COMMIT into one run."));
  if (out.warnings?.length) parts.push(h("div", { class: "note warn" }, out.warnings.map((w) => h("p", {}, `${w.level} ${w.number}: ${w.message}`))));
  return parts;
}

function one(r, i, all) {
  const which = all > 1 ? `${i + 1}. ` : "";
  const time = h("span", { class: "muted small" }, seconds(r.ms / 1000));
  if (!r.columns) return h("div", { class: "note ok" }, h("div", { class: "tools" }, h("strong", {}, `${which}Done`), r.affected ? `${count(r.affected)} ${r.affected === 1 ? "row" : "rows"} changed` : "", r.info ? h("span", { class: "muted" }, r.info) : null, r.last_insert_id !== "0" ? `last id ${r.last_insert_id}` : "", time));
  return h("section", { class: "panel" }, h("header", {}, h("h2", {}, `${which}${count(r.count)} ${r.count === 1 ? "row" : "rows"}${r.more ? ", and more" : ""}`), r.warnings ? badge("warn", `${count(r.warnings)} warnings`) : null, time), r.count ? grid(r, `Result ${i + 1}`) : h("p", { class: "empty" }, r.columns.map((c) => c.name).join(", ")));
}

function failure(e, wrote) {
  const number = h("span", { class: "small muted" }, `Error ${e.number} (${e.sqlstate})`);
  if (!wrote && [1290, 1792].includes(e.number)) return note("bad", "This tab only reads", e.message, "Switch “Allow writes” on to change something.", number);
  const leader = live.group?.members.find((m) => m.id === live.group.leader && m.id !== live.group.answered_by);
  if (wrote && e.number === 1053 && leader) return note("bad", e.message, h("span", {}, "Writes are for the leader: ", h("a", { href: `${consoleOf(leader)}#/sql` }, `open the console of member ${leader.id}`), "."), number);
  return note("bad", e.message, number);
}
