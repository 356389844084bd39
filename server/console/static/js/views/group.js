// The group: its members, and the node's numbers over the last ten minutes.
import { h, put, text } from "../dom.js";
import { age, bytes, count, percent, seconds, rate } from "../format.js";
import { live, percentiles, watch } from "../live.js";
import { badge, bar } from "../parts.js";
import { chart } from "../chart.js";
import { away, consoleOf, judge, roles, states } from "../members.js";

export const title = "Group";

export function mount(root) {
  const state = h("section", { class: "state", "aria-live": "polite" });
  const members = h("section", { class: "members", "aria-label": "Members" });
  const charts = makeCharts();
  const about = h("p", {});
  put(root, h("h1", { class: "unseen" }, "The group"), state, members, h("div", { class: "head" }, h("h2", {}, "This node"), about), charts.root);
  const cards = new Map();
  let said = "";
  return watch((l) => {
    if (l.problem && !l.group) {
      said = "";
      put(members);
      state.className = "state warn";
      put(state, h("div", {}, h("h1", {}, l.problem.message), h("p", {}, "The other views show what your account may see.")));
      return;
    }
    const g = l.group;
    if (!g) {
      if (said !== "asking") put(state, h("div", {}, h("h1", {}, "Asking the node…")));
      said = "asking";
      return;
    }
    said = header(state, g, l, said);
    const seen = new Set();
    g.members.forEach((m, i) => {
      const card = cards.get(m.id) ?? h("article", { class: "member", "data-member": m.id });
      cards.set(m.id, card);
      seen.add(m.id);
      fillCard(card, m, g, l);
      if (members.children[i] !== card) members.insertBefore(card, members.children[i] ?? null);
    });
    for (const [id, card] of cards) if (!seen.has(id)) (card.remove(), cards.delete(id));
    const leads = g.leader === g.answered_by;
    text(about, `Member ${g.answered_by}: what runs here, each second. ${leads ? "It leads: the group's commits are made here." : "It follows: commits are made by the leader and applied here."}`);
    charts.update();
  });
}

/** header says how the group stands; only what has changed is said anew. */
function header(state, g, l, said) {
  const lost = l.state === "lost";
  const [kind, head, more] = lost ? ["bad", "This node does not answer", "What follows is what it said last."] : judge(g);
  const key = [kind, head, more].join("|");
  if (key !== said) {
    state.className = `state ${kind}`;
    put(state, h("div", {}, h("h1", {}, head), h("p", {}, more), h("p", { class: "small", "aria-live": "off" })));
  }
  text(state.firstChild.lastChild, `As member ${g.answered_by} sees it, ${lost ? `${age((performance.now() - l.groupAt) / 1000)} ago` : "now"} · term ${g.term} · group ${g.id}`);
  return key;
}

function fillCard(card, m, g, l) {
  const out = away(m);
  const last = l.seen.get(m.id);
  const shown = out && last ? { ...last.member, ...{ state: m.state, error: m.error, role: m.role } } : m;
  card.className = `member${m.id === g.leader ? " leads" : ""}${out ? " away" : ""}`;
  const [kind, state] = states[m.state] ?? ["", "Unknown"];
  const role = roles[m.role] ?? "Member";
  const key = JSON.stringify([out ? Math.floor((performance.now() - (last?.at ?? 0)) / 1000) : 0, shown, g.leader]);
  if (card.dataset.shown === key) return;
  card.dataset.shown = key;
  const link = m.id !== g.answered_by && consoleOf(shown);
  const focused = card.contains(document.activeElement);
  put(
    card,
    h("header", {}, h("h2", {}, link ? h("a", { href: link, title: "Open its console" }, `Member ${m.id}`) : `Member ${m.id}`), m.id === g.answered_by ? badge("", "this node") : null, badge(m.id === g.leader ? "accent" : "soft", role), badge(kind, state), m.draining ? badge("warn", "draining") : null, m.disk_full ? badge("bad", "disk full") : null),
    m.error ? h("p", { class: "error" }, m.error) : null,
    out ? h("p", { class: "muted" }, last ? `It answered last ${age((performance.now() - last.at) / 1000)} ago.` : "It has not answered since this page was opened.") : null,
    out && lagUnknown(m) ? null : lag(m),
    facts(shown, out),
  );
  if (focused) card.querySelector("a")?.focus();
}

// lagUnknown: of a member that does not answer the leader knows how far it is behind, if it has heard from it.
const lagUnknown = (m) => Number(m.lag_bytes) < 0 && Number(m.lag_entries) === 0;

function lag(m) {
  const behind = Number(m.lag_ms) > 1000 || Number(m.lag_entries) > 1000;
  const one = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  return h("dl", { class: `lag${behind ? " behind" : ""}` }, one("Behind by", Number(m.lag_ms) < 0 ? "unknown" : seconds(Number(m.lag_ms) / 1000)), one("Entries", lagUnknown(m) ? "unknown" : count(m.lag_entries)), one("Log", Number(m.lag_bytes) < 0 ? "unknown" : bytes(m.lag_bytes)));
}

function facts(m, out) {
  const rows = [];
  const row = (name, value) => value && rows.push(h("dt", {}, name), h("dd", {}, value));
  row("SQL", m.mysql_address || m.peer_address);
  if (!out) {
    const total = Number(m.disk_total_bytes);
    const free = Number(m.disk_free_bytes);
    if (total > 0) row("Disk free", `${bytes(free)} of ${bytes(total)}`);
    row("Clients", count(m.connections));
    row("Up for", age(m.uptime_seconds));
    const list = h("dl", { class: "facts" }, rows, m.version ? [h("dt", {}, "Version"), h("dd", {}, m.version)] : null);
    return total > 0 ? h("div", {}, bar(total - free, total, `${percent(total - free, total)} of the disk is used`), list) : list;
  }
  row("Version", m.version);
  return h("dl", { class: "facts" }, rows);
}

function makeCharts() {
  const time = (s) => (s === null ? "–" : seconds(s));
  const all = {
    commits: chart({ title: "Commits", series: ["committed here", "applied"], format: rate }),
    statements: chart({ title: "Statements", series: ["statements"], format: rate }),
    commitTime: chart({ title: "Time of a commit", series: ["median", "95 %", "99 %"], format: time, least: 0.001 }),
    statementTime: chart({ title: "Time of a statement", series: ["median", "95 %", "99 %"], format: time, least: 0.001 }),
  };
  const parts = [0.5, 0.95, 0.99];
  return {
    root: h("div", { class: "charts" }, Object.values(all).map((c) => c.root)),
    update() {
      const points = (fn) => live.samples.map((s, i) => ({ at: s.at, values: fn(s, i) }));
      all.commits.update(points((s) => [s.commitRate, s.appliedRate]));
      all.statements.update(points((s) => [s.statementRate]));
      all.commitTime.update(points((_, i) => percentiles("commits", i, parts)));
      all.statementTime.update(points((_, i) => percentiles("statements", i, parts)));
    },
  };
}
