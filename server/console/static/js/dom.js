// Elements are made of names, attributes and children. Texts become text nodes, always: nothing
// that comes from a database is ever read as markup.

/** h makes an element. Attributes whose value is null or false are left out; on* are listeners. */
export function h(tag, attrs, ...children) {
  return fill(document.createElement(tag), attrs, children);
}

/** svg makes an element of a drawing. */
export function svg(tag, attrs, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attrs, children);
}

function fill(el, attrs, children) {
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") el[name] = value;
    else el.setAttribute(name, value === true ? "" : value);
  }
  el.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return el;
}

/** put replaces what is in an element. */
export function put(el, ...children) {
  el.replaceChildren(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return el;
}

/** text changes an element's text, if it is another one. */
export function text(el, value) {
  if (el.textContent !== value) el.textContent = value;
}

/** say tells those who listen to the page what has happened. */
export function say(what) {
  text(document.getElementById("say"), what);
}
