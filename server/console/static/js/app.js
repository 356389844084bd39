// The page: who is signed in, which view is shown, the frame around it.
import { h, put, text } from "./dom.js";
import { post, session, signedInWith, whenSignedOut } from "./api.js";
import { icon } from "./icons.js";
import { age } from "./format.js";
import { start, stop, watch } from "./live.js";
import { showSignIn } from "./views/signin.js";
import * as group from "./views/group.js";
import * as activity from "./views/activity.js";
import * as statements from "./views/statements.js";
import * as storage from "./views/storage.js";
import * as settings from "./views/settings.js";
import * as tables from "./views/tables.js";
import * as sql from "./views/sql.js";

const views = { group, activity, statements, storage, settings, tables, sql };

const root = document.getElementById("app");
let leave = () => {};
let leaving = false; // signing out by hand

function begin(who) {
  signedInWith(who.token);
  const frame = makeFrame(who);
  put(root, frame.root);
  start(() => signOut("You were signed out."));
  const stopWatching = watch(frame.heard);
  const go = () => show(frame, who);
  addEventListener("hashchange", go);
  go();
  leave = () => {
    removeEventListener("hashchange", go);
    stopWatching();
    frame.close();
    stop();
  };
}

function signOut(why) {
  if (leaving) return; // the form is not to be drawn twice: it may be filled in by then
  leave();
  leave = () => {};
  signedInWith("");
  sql.forget();
  document.title = "Trireme";
  showSignIn(root, why, begin);
}

/** show mounts the view of the address: #/name/more. */
function show(frame, who) {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const view = views[name] ?? views.group;
  frame.close();
  frame.mark(views[name] ? name : "group");
  document.title = `${view.title} · ${who.node.cluster} · Trireme`;
  frame.close = view.mount(frame.main, { who, path: rest.map(decoded) }) ?? (() => {});
}

/** decoded is a part of an address as it was before. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function makeFrame(who) {
  const links = Object.entries(views).map(([name, v]) => h("a", { href: `#/${name}`, "data-view": name }, icon(name), h("span", {}, v.title)));
  const main = h("main", { id: "main", tabindex: "-1" });
  const word = h("span", { class: "live", "data-state": "connecting" }, "connecting");
  const skip = h("a", { class: "skip", href: "#main", onclick: (e) => (e.preventDefault(), main.focus()) }, "To the content");
  const top = h(
    "header",
    { class: "top" },
    h("p", { class: "where" }, h("b", {}, who.node.cluster), " ", h("span", { class: "muted" }, `· member ${who.node.member} · ${who.node.address} · ${who.node.version}`)),
    h("span", { id: "marks" }),
    word,
    h("div", { class: "who" }, themeButton(), h("span", { class: "muted" }, who.user), h("button", { class: "bare", "aria-label": "Sign out", title: "Sign out", onclick: leaveNow }, icon("leave"))),
  );
  return {
    root: h("div", { class: "frame" }, skip, h("a", { class: "brand", href: "#/group" }, h("img", { src: "icon.svg", alt: "" }), "Trireme"), top, h("nav", { class: "views", "aria-label": "Views" }, h("ul", {}, links.map((a) => h("li", {}, a)))), main),
    main,
    close: () => {},
    mark(name) {
      for (const a of links) {
        if (a.dataset.view === name) a.setAttribute("aria-current", "page");
        else a.removeAttribute("aria-current");
      }
    },
    heard(l) {
      word.dataset.state = l.state;
      text(word, { connecting: "connecting", live: "live", refused: "not live", lost: `no word for ${age((performance.now() - l.groupAt) / 1000)}` }[l.state]);
    },
  };
}

async function leaveNow() {
  leaving = true;
  try {
    await post("sign-out", {}, { quiet: true });
  } catch {
    // It ends by itself.
  }
  leaving = false;
  signOut("You have signed out.");
}

/** themeButton changes between light and dark, and remembers it. */
function themeButton() {
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const button = h("button", { class: "bare", id: "theme" });
  const draw = () => {
    put(button, icon(dark() ? "light" : "dark"));
    const label = dark() ? "Light theme" : "Dark theme";
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  button.addEventListener("click", () => {
    const next = dark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("trireme-theme", next);
    } catch {
      // It is not remembered.
    }
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
  return button;
}

whenSignedOut(() => signOut("You were signed out."));
try {
  begin(await session());
} catch (e) {
  signOut(e.status === 401 ? "" : e.message);
}
