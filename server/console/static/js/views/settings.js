// What the node and the group are set to, and by whom. They are changed by SQL, trireme admin, or
// the node's configuration.
import { h, put, text } from "../dom.js";
import { admin } from "../api.js";
import { count } from "../format.js";
import { badge, panel } from "../parts.js";
import { table } from "../table.js";
import { showTrouble } from "./activity.js";

export const title = "Settings";

const origins = {
  ADMIN_ORIGIN_DEFAULT: ["", "default"],
  ADMIN_ORIGIN_CONFIGURATION: ["soft", "configuration"],
  ADMIN_ORIGIN_SET_GLOBAL: ["warn", "SET GLOBAL"],
  ADMIN_ORIGIN_GROUP: ["ok", "the group"],
};
const scopes = { ADMIN_SCOPE_NODE: "node, at a start", ADMIN_SCOPE_VARIABLE: "node", ADMIN_SCOPE_GROUP: "group" };

export function mount(root, { who }) {
  const trouble = h("div", { hidden: true });
  const total = h("span", { class: "muted" });
  const search = h("input", { type: "search", placeholder: "a part of the name", oninput: show, "aria-label": "Search settings" });
  const changed = h("input", { type: "checkbox", onchange: show });
  let all = [];
  const list = table({
    label: "Settings",
    empty: "No setting is like that.",
    key: (s) => s.name,
    columns: [
      { title: "Name", by: (s) => s.name, kind: "tight", cell: (s) => h("code", {}, s.name) },
      { title: "Value", kind: "text", cell: (s) => s.value },
      { title: "Default", kind: "text", cell: (s) => (s.value === s.default_value ? "" : s.default_value) },
      { title: "Origin", by: (s) => s.origin, cell: (s) => h("span", { title: s.origin_detail }, badge(...(origins[s.origin] ?? ["", "unknown"])), s.origin_detail ? h("span", { class: "muted small" }, ` ${s.origin_detail}`) : null) },
      { title: "Of", kind: "tight", by: (s) => s.scope, cell: (s) => scopes[s.scope] ?? "" },
      { title: "Meaning", kind: "about", cell: (s) => h("span", { class: "small muted" }, s.description) },
    ],
  });
  put(
    root,
    h("div", { class: "head" }, h("h1", {}, title), h("p", {}, `Of member ${who.node.member} and of the group; they are only shown here.`)),
    trouble,
    panel("Settings", h("div", { class: "tools" }, total, h("label", {}, changed, "only those that are not the default"), h("label", {}, search)), list.root),
  );
  function show() {
    const part = search.value.trim().toLowerCase().replaceAll("-", "_");
    const shown = all.filter((s) => s.name.includes(part) && (!changed.checked || s.origin !== "ADMIN_ORIGIN_DEFAULT"));
    list.update(shown);
    text(total, `${count(shown.length)} of ${count(all.length)}`);
  }
  (async () => {
    try {
      all = (await admin("ListSettings", {})).settings;
      show();
    } catch (e) {
      showTrouble(trouble, e);
    }
  })();
}
