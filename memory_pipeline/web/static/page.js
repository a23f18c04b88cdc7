"use strict";
// Everything works without this script. With it, a form changes its part of the page without loading all of it, and
// the keys of `memory review` work. What was said reaches it only as elements that the server wrote.

const AGAIN_MS = 2500;
let current = null; // the id of the card that keys are for
let work = Promise.resolve(); // keys that come quickly wait for the ones before them
let turn = null; // while a key acts: the form that it submits is sent before the next key acts
let timer = 0;

const cards = () => [...document.querySelectorAll(".card")];
const card = () => cards().find((each) => each.id === current) || cards()[0] || null;

function choose(next, focus) {
  cards().forEach((each) => each.classList.toggle("current", each === next));
  current = next ? next.id : null;
  if (next && focus) {
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }
}

function readAgainSoon() {
  clearTimeout(timer);
  if (document.querySelector("#status[data-again]")) timer = setTimeout(() => load(location.href, {}, ["status"]), AGAIN_MS);
}

async function load(address, options, parts) {
  const answer = await fetch(address, { credentials: "same-origin", ...options });
  const read = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!read.getElementById("main")) return location.reload();
  const at = cards().findIndex((each) => each.id === current);
  for (const id of parts) document.getElementById(id).replaceWith(document.adoptNode(read.getElementById(id)));
  const [own, other] = [document.querySelector(".top"), read.querySelector(".top")];
  own.replaceWith(document.adoptNode(other));
  if (parts.includes("main")) {
    document.title = read.title;
    history.replaceState(null, "", answer.url);
    choose(cards().find((each) => each.id === current) || cards()[Math.min(at, cards().length - 1)] || cards()[0], at >= 0);
  }
  readAgainSoon();
}

function send(form, button) {
  const fields = new URLSearchParams(new FormData(form, button));
  const isPost = form.method === "post";
  const address = isPost ? form.action : `${form.action}?${fields}`;
  return load(address, isPost ? { method: "POST", body: fields } : {}, ["status", "main"]);
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-swap]")) return;
  event.preventDefault();
  const [form, button] = [event.target, event.submitter];
  const at = form.closest(".card");
  if (at) current = at.id;
  const sending = () => (form.isConnected ? send(form, button) : null);
  if (turn) turn.sending = sending;
  else work = work.then(sending).catch(() => location.reload());
});

document.addEventListener("change", (event) => {
  if (event.target.closest(".filters[data-swap]")) event.target.form.requestSubmit();
});

document.addEventListener("focusin", (event) => {
  const own = event.target.closest(".card");
  if (own) choose(own, false);
});

function act(key) {
  const own = card();
  if (key === "u") return document.querySelector("#status [data-key=u]")?.click();
  if (key === "/") return location.assign("/search");
  if (!own) return null;
  if (key === "j" || key === "k") {
    const all = cards();
    return choose(all[all.indexOf(own) + (key === "j" ? 1 : -1)] || own, true);
  }
  if (key === "s") return own.querySelector("select[name=section]")?.focus();
  if (key === "e") {
    const edit = own.querySelector("details.edit");
    if (!edit) return null;
    choose(own, false);
    edit.open = true;
    return edit.querySelector("textarea").focus();
  }
  if (["a", "r", "l", "w"].includes(key)) {
    choose(own, true);
    return own.querySelector(`[data-key=${key}]`)?.click();
  }
  return null;
}

function take(key) {
  const own = {};
  turn = own;
  try {
    act(key);
  } finally {
    turn = null;
  }
  return own.sending?.();
}

document.addEventListener("keydown", (event) => {
  const field = event.target.closest("textarea, input, select");
  if (field) {
    if (event.key === "Escape") {
      const edit = field.closest("details.edit");
      if (edit) edit.open = false;
      (field.closest(".card") || document.body).focus();
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) field.form?.querySelector("[value=edit]")?.click();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const keys = document.getElementById("keys");
  if (event.key === "?") return keys.open ? keys.close() : keys.showModal();
  if (keys.open) return;
  if (!["a", "r", "l", "e", "s", "w", "u", "j", "k", "/"].includes(event.key)) return;
  event.preventDefault();
  work = work.then(() => take(event.key)).catch(() => location.reload());
});

// whoever comes back from an editor sees what they marked there
document.addEventListener("visibilitychange", () => {
  const isEditing = document.querySelector("details.edit[open]");
  if (!document.hidden && !isEditing && cards().length) work = work.then(() => load(location.href, {}, ["status", "main"]));
});

choose(card(), false);
readAgainSoon();
