// What goes on at this node: who waits for whom, transactions, sessions; and large transactions, which all members tell of.
import { h, put, say } from "../dom.js";
import { admin } from "../api.js";
import { age, bytes, count, percent, seconds } from "../format.js";
import { ask, badge, panel, problem, refresh } from "../parts.js";
import { table } from "../table.js";

export const title = "Activity";

export function mount(root, { who }) {
  const trouble = h("div", { hidden: true });
  const waits = table({
    label: "Lock waits",
    empty: "Nobody waits for a lock.",
    key: (w) => `${w.waiting}/${w.blocking}/${w.waiting_session}/${w.blocking_session}/${w.metadata}/${w.table}/${w.index}/${w.key}`,
    columns: [
      { title: "Waits", kind: "tight", cell: (w) => session(w.waiting_session) },
      { title: "For", num: true, cell: (w) => (w.since === null ? "–" : seconds(w.since / 1000)) },
      { title: "Is blocked by", kind: "tight", cell: (w) => session(w.blocking_session) },
      { title: "On", kind: "tight", cell: lockedThing },
      { title: "Waiting statement", kind: "text", cell: (w) => w.waiting_statement },
      { title: "Blocking statement", kind: "text", cell: (w) => w.blocking_statement || (w.metadata ? "(idle)" : "(idle in its transaction)") },
      { title: "", cell: (w) => (who.may.kill && w.blocking_session !== "0" ? killButton(w.blocking_session, "the session that blocks", trouble) : ""), once: true },
    ],
  });
  const transactions = table({
    label: "Transactions",
    empty: "No transaction is open.",
    key: (t) => `${t.session}/${t.began_us}`,
    columns: [
      { title: "Session", num: true, cell: (t) => t.session },
      { title: "User", kind: "tight", cell: (t) => `${t.user}@${t.host}` },
      { title: "Open for", num: true, by: (t) => Number(t.age_ms), cell: (t) => seconds(t.age_ms / 1000) },
      { title: "State", cell: (t) => badge(t.state === "LOCK WAIT" ? "warn" : "", t.state.toLowerCase()) },
      { title: "Isolation", kind: "tight", cell: (t) => `${t.isolation.toLowerCase()}${t.read_only ? ", read only" : ""}` },
      { title: "Statement", kind: "text", cell: (t) => t.statement || "(idle)" },
      { title: "", once: true, cell: (t) => (who.may.kill ? killButton(t.session, "the session", trouble) : "") },
    ],
  });
  const large = table({
    label: "Large transactions",
    empty: "None runs.",
    key: ({ t, m }) => `${t.id}/${m.member}`,
    columns: [
      { title: "Session", kind: "tight", cell: ({ t }) => `${session(t.session)} of member ${t.leader}` },
      { title: "Open for", num: true, cell: ({ t }) => seconds(t.age_ms / 1000) },
      { title: "Member", num: true, cell: ({ m }) => m.member },
      { title: "State", cell: ({ m }) => badge(largeKinds[largeState(m)] ?? "", largeState(m)) },
      { title: "Events", num: true, cell: ({ m }) => (away(m) ? null : bytes(m.event_bytes)) },
      { title: "Synced", num: true, cell: ({ m }) => (m.whole ? "all" : away(m) ? bytes(m.synced_bytes) : `${bytes(m.synced_bytes)} of ${bytes(m.stored_bytes)}`) },
      { title: "Applied ahead", num: true, cell: ({ t, m }) => (away(m) || m.member === t.leader ? null : `${count(m.applied_rows)} rows, ${percent(Number(m.applied_bytes), Number(m.event_bytes))}`) },
      { title: "Applier waits for", kind: "tight", cell: ({ m }) => m.applier_waits_for },
      { title: "Transaction", kind: "tight", cell: ({ t }) => t.id },
    ],
  });
  const largeTrouble = h("div", { hidden: true });
  const largePanel = panel("Large transactions of the group", null, large.root);
  largePanel.hidden = true;
  const active = h("input", { type: "checkbox", onchange: () => load(false).catch((e) => showTrouble(trouble, e)) });
  const total = h("span", { class: "muted" });
  const sessions = table({
    label: "Sessions",
    empty: "There are none.",
    key: (s) => s.id,
    columns: [
      { title: "Session", num: true, by: (s) => Number(s.id), cell: (s) => s.id },
      { title: "User", kind: "tight", by: (s) => s.user, cell: (s) => `${s.user}@${s.host}` },
      { title: "Schema", kind: "tight", by: (s) => s.schema, cell: (s) => s.schema },
      { title: "Command", by: (s) => s.command, cell: (s) => badge(s.command === "Sleep" ? "" : "soft", s.command) },
      { title: "Time", num: true, by: (s) => Number(s.time_ms), cell: (s) => age(s.time_ms / 1000) },
      { title: "State", cell: (s) => s.state },
      { title: "Statement", kind: "text", cell: (s) => s.statement + (s.statement_cut ? " …" : "") },
      { title: "", once: true, cell: (s) => (who.may.kill ? killButton(s.id, `the session of ${s.user}`, trouble) : "") },
    ],
  });
  put(
    root,
    h("div", { class: "head" }, h("h1", {}, title), h("p", {}, `On member ${who.node.member}. Sessions that write run at the leader.`)),
    trouble,
    panel("Lock waits", null, waits.root),
    largeTrouble,
    largePanel,
    panel("Transactions", null, transactions.root),
    panel("Sessions", h("div", { class: "tools" }, total, h("label", {}, active, "only those that run something")), sessions.root),
  );

  async function load(background = true) {
    const options = { background };
    const [s, t, w] = await Promise.all([admin("ListSessions", { active_only: active.checked, limit: 500 }, options), admin("ListTransactions", { limit: 500 }, options), admin("ListLockWaits", { limit: 500 }, options)]);
    const times = new Map(s.sessions.map((x) => [x.id, Number(x.time_ms)]));
    waits.update(w.waits.map((x) => ({ ...x, since: times.get(x.waiting_session) ?? null })));
    transactions.update(t.transactions);
    sessions.update(s.sessions);
    put(total, `${count(s.sessions.length)} of ${count(s.total)}`);
  }

  // By itself, since the answer waits for members that do not answer.
  async function loadLarge() {
    const { transactions: list } = await admin("ListLargeTransactions", {}, { background: true });
    large.update(list.flatMap((t) => t.members.map((m) => ({ t, m }))));
    largePanel.hidden = list.length === 0;
  }
  const ends = [refresh(2000, load, (e) => showTrouble(trouble, e)), refresh(2000, loadLarge, (e) => showTrouble(largeTrouble, e?.number === 1227 ? null : e))];
  return () => ends.forEach((end) => end());
}

const largeState = (m) => m.state.replace("ADMIN_LARGE_TRANSACTION_STATE_", "").replaceAll("_", " ").toLowerCase();
const away = (m) => largeState(m) === "unreachable";
const largeKinds = { unreachable: "bad", absent: "warn", refused: "warn", fetching: "warn", "rolling back": "warn", complete: "soft", committing: "soft" };

// lockedThing is what somebody waits for.
function lockedThing(w) {
  const name = [w.schema, w.table].filter((s) => s !== "").join(".");
  if (w.metadata) return `${name} (${w.metadata === "TABLE" ? "the definition" : w.metadata.toLowerCase()})`.trim();
  return `${name}${w.index ? ` · ${w.index}` : " (the table)"}`;
}

const session = (id) => (id === "0" ? "unknown" : `session ${id}`);

export function showTrouble(place, e) {
  put(place, e ? problem(e) : null);
  place.hidden = !e;
}

function killButton(id, what, trouble) {
  return h("button", { class: "small", "aria-label": `End session ${id}`, onclick: () => kill(id, what, trouble) }, "End…");
}

async function kill(id, what, trouble) {
  const only = h("input", { type: "checkbox" });
  const yes = await ask(`End session ${id}?`, [h("p", {}, `This ends ${what} on this node: its transaction is rolled back, and its client is disconnected.`), h("p", {}, h("label", {}, only, " only the statement that it runs"))], "End it");
  if (!yes) return;
  try {
    await admin("KillSession", { id, statement_only: only.checked });
    say(`Session ${id} was told to end.`);
  } catch (e) {
    showTrouble(trouble, e);
  }
}
