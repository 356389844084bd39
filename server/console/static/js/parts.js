// Parts that several views use.
import { h } from "./dom.js";
import { Problem } from "./api.js";

export const badge = (kind, ...what) => h("span", { class: `badge ${kind}` }, what);

/** note is a message that stays. */
export const note = (kind, title, ...more) => h("div", { class: `note ${kind}`, role: kind === "bad" ? "alert" : null }, h("strong", {}, title), more.map((m) => h("p", {}, m)));

/** problem shows an error with its number. */
export function problem(e) {
  if (!(e instanceof Problem)) return note("bad", e.message);
  const kind = [1227, 1044].includes(e.number) ? "warn" : "bad";
  return note(kind, e.message, h("span", { class: "muted small" }, `Error ${e.number} (${e.sqlstate})`, e.advice ? `: ${e.advice}.` : ""));
}

/** panel is a part of a page with a heading. */
export function panel(title, tools, ...inside) {
  return h("section", { class: "panel" }, h("header", {}, h("h2", {}, title), tools), inside);
}

/** bar shows a part of a whole. */
export function bar(part, whole, label, warn = 0.8, bad = 0.92) {
  const f = whole > 0 ? Math.min(1, part / whole) : 0;
  const inner = h("i");
  inner.style.width = `${(100 * f).toFixed(1)}%`;
  return h("span", { class: `bar ${f >= bad ? "bad" : f >= warn ? "warn" : ""}`, role: "img", "aria-label": label }, inner);
}

export const figure = (name, value, more) => h("div", {}, h("dt", {}, name), h("dd", {}, value, more ? h("small", {}, " ", more) : null));

/**
 * refresh calls fn now and again every so many milliseconds while the page is looked at; it
 * returns what ends that. failed is told of errors, and of null when there is none.
 */
export function refresh(every, fn, failed) {
  let over = false;
  let timer = 0;
  async function once() {
    clearTimeout(timer);
    if (!document.hidden) {
      try {
        await fn();
        if (!over) failed(null);
      } catch (e) {
        if (!over) failed(e);
        if (e.number === 1227) return;
      }
    }
    if (!over) timer = setTimeout(once, every);
  }
  const seen = () => document.hidden || over || once();
  document.addEventListener("visibilitychange", seen);
  once();
  return () => {
    over = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}

/** ask asks for a confirmation; it is true if that was given. */
export function ask(title, what, yes) {
  return new Promise((done) => {
    const box = h(
      "dialog",
      { "aria-labelledby": "ask-title" },
      h("form", { method: "dialog" }, h("h2", { id: "ask-title" }, title), h("div", {}, what), h("div", { class: "tools" }, h("button", { value: "no", autofocus: true }, "Cancel"), h("button", { class: "danger", value: "yes" }, yes))),
    );
    box.addEventListener("close", () => {
      box.remove();
      done(box.returnValue === "yes");
    });
    document.body.append(box);
    box.showModal();
  });
}
