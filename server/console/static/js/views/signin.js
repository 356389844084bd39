// Signing in with an account of the database.
import { h, put, say } from "../dom.js";
import { signIn } from "../api.js";
import { problem } from "../parts.js";

/** showSignIn asks for user and password, and calls done with the session. */
export function showSignIn(root, why, done) {
  const trouble = h("div", { hidden: true });
  const user = h("input", { name: "user", autocomplete: "username", required: true, autofocus: true, spellcheck: "false", autocapitalize: "none", maxlength: "256" });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password", maxlength: "4096" });
  const button = h("button", { class: "primary" }, "Sign in");
  async function submit(e) {
    e.preventDefault();
    button.disabled = true;
    put(trouble).hidden = true;
    say("Signing in");
    try {
      done(await signIn(user.value, password.value));
    } catch (error) {
      put(trouble, problem(error)).hidden = false;
      button.disabled = false;
      password.value = "";
      password.focus();
    }
  }
  put(
    root,
    h(
      "main",
      { class: "signin" },
      h(
        "form",
        { onsubmit: submit, method: "post", action: "#" },
        h("div", { class: "mark" }, h("img", { src: "icon.svg", alt: "" }), h("div", {}, h("h1", {}, "Trireme"), h("p", { class: "muted small" }, location.host))),
        why ? h("p", { class: "muted" }, why) : null,
        h("label", {}, "User", user),
        h("label", {}, "Password", password),
        trouble,
        button,
        h("p", { class: "muted small" }, "Accounts are those of the database."),
      ),
    ),
  );
  user.focus();
}
