// The calls of the node's API. An error has number, sqlstate, message and advice.

export class Problem extends Error {
  constructor(status, e) {
    super(e.message);
    Object.assign(this, { status, number: e.number, sqlstate: e.sqlstate, advice: e.advice ?? "" });
  }
}

let token = "";
let onSignedOut = () => {};

/** signedInWith takes over the token of a sign-in. */
export function signedInWith(t) {
  token = t;
}

/** whenSignedOut is called when a call finds that nobody is signed in any more. */
export function whenSignedOut(fn) {
  onSignedOut = fn;
}

async function send(path, options, quiet) {
  let response;
  const sent = token;
  try {
    response = await fetch(`api/${path}`, { credentials: "same-origin", redirect: "error", ...options });
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw new Problem(0, { number: 2003, sqlstate: "HY000", message: "The node does not answer.", advice: "It may be restarting; the page tries again." });
  }
  let body;
  try {
    body = await response.json();
  } catch {
    throw new Problem(response.status, { number: 2013, sqlstate: "HY000", message: "The node's answer was cut off." });
  }
  if (response.ok) return body;
  const problem = new Problem(response.status, body.error ?? { number: 1105, sqlstate: "HY000", message: response.statusText });
  // A late answer to a call of an earlier sign-in says nothing of this one.
  if (response.status === 401 && !quiet && sent === token) onSignedOut();
  throw problem;
}

/** post makes a call. background says that the page makes it by itself. */
export function post(path, body = {}, { background = false, quiet = false } = {}) {
  const headers = { "Content-Type": "application/json", "Trireme-Token": token };
  if (background) headers["Trireme-Background"] = "1";
  return send(path, { method: "POST", headers, body: JSON.stringify(body) }, quiet);
}

/** admin makes one of the operators' calls. */
export const admin = (call, body, options) => post(`admin/${call}`, body, options);

/** session asks who is signed in. */
export const session = () => send("session", { headers: { "Trireme-Background": "1" } }, true);

/** signIn signs in. */
export const signIn = (user, password) => post("sign-in", { user, password }, { quiet: true });
