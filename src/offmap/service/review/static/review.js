"use strict";
// Keys, focus and selection. Everything that they do, forms and links do too.
(() => {
  const page = () => document.getElementById("page");
  const live = document.getElementById("live");
  const trouble = document.getElementById("trouble");
  const help = document.getElementById("help");
  const single = document.getElementById("single-keys");
  const STORED = "offmap-single-keys";

  document.documentElement.classList.add("with-script");
  try {
    single.checked = localStorage.getItem(STORED) !== "off";
  } catch {
    // A browser that stores nothing keeps single keys on.
  }
  single.addEventListener("change", () => {
    try {
      localStorage.setItem(STORED, single.checked ? "on" : "off");
    } catch {
      // The choice then holds until the page is left.
    }
  });

  const visible = (element) => element.getClientRects().length > 0 && !element.disabled;
  const withKey = (key) =>
    [...page().querySelectorAll("[data-key]")].find((element) => element.dataset.key === key && visible(element));
  const picks = () => [...page().querySelectorAll("input.pick")];
  const isField = (element) => element.matches("input:not([type=checkbox]), textarea, select");

  function announceSelection() {
    const count = picks().filter((pick) => pick.checked).length;
    const words = document.getElementById("selected");
    if (words) words.textContent = count === 1 ? "1 row selected" : `${count} rows selected`;
  }

  let busy = false;
  const pressed = [];

  function focusPick(step) {
    const all = picks();
    const place = all.indexOf(document.activeElement);
    const next = all[Math.min(Math.max(place + step, 0), all.length - 1)];
    if (next) next.focus();
  }

  function pick() {
    const all = picks();
    const place = all.indexOf(document.activeElement);
    if (place < 0) {
      all[0]?.focus();
    } else {
      all[place].checked = !all[place].checked;
      announceSelection();
      focusPick(1);
    }
    return true;
  }

  function pickAll() {
    const all = picks();
    const checked = !all.every((one) => one.checked);
    all.forEach((one) => (one.checked = checked));
    announceSelection();
  }

  function why() {
    const all = picks();
    const chosen = all.find((one) => one === document.activeElement) ?? all[0];
    chosen.closest("li, tr").querySelector("a.why").click();
    return true;
  }

  function press(element) {
    if (isField(element)) {
      element.focus();
      element.select();
    } else {
      element.click();
    }
  }

  function escape() {
    if (help.open) help.close();
    else document.getElementById("title")?.focus();
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const target = event.target;
    if (event.key === "Escape") return escape();
    if (isField(target)) {
      // Each field of the selection has a button of its own; without this, Enter would press the first.
      if (event.key === "Enter" && target.dataset.enter) {
        event.preventDefault();
        document.querySelector(target.dataset.enter).click();
      }
      return;
    }
    if (help.open || event.repeat) return;
    if (target.matches("input.pick") && /^Arrow/.test(event.key)) {
      event.preventDefault();
      return focusPick(/Right|Down/.test(event.key) ? 1 : -1);
    }
    if (!single.checked && event.key !== "?") return;
    if (act(event.key)) event.preventDefault();
  }

  function act(key) {
    // What is pressed while an answer is on its way is meant for the page that is to come.
    if (busy) return pressed.push(key) > 0;
    if (key === "x") return pick();
    if (key === "w" && picks().length) return why();
    const element = withKey(key);
    if (element) press(element);
    return Boolean(element);
  }

  function typeInto(field, keys) {
    if (keys.some((key) => key.length === 1)) field.value = "";
    for (const key of keys) {
      // A name is sent by someone who sees it.
      if (key === "Enter" || key === "Tab") return;
      if (key === "Backspace") field.value = field.value.slice(0, -1);
      else if (key.length === 1) field.value += key;
    }
  }

  // Does what was typed ahead. After a key that leads into a field, the others are its text and no acts.
  function replay() {
    while (pressed.length && !busy) {
      act(pressed.shift());
      if (help.open) pressed.length = 0;
      if (isField(document.activeElement)) typeInto(document.activeElement, pressed.splice(0));
    }
  }

  document.addEventListener("keydown", onKey);
  document.addEventListener("change", (event) => {
    if (event.target.matches("input.pick")) announceSelection();
  });
  // In the capturing phase, before htmx follows the link.
  document.addEventListener(
    "click",
    (event) => {
      if (event.target.closest("#open-help")) {
        event.preventDefault();
        event.stopPropagation();
        help.showModal();
      } else if (event.target.closest("#every")) {
        pickAll();
      }
    },
    true,
  );

  function say(words) {
    trouble.textContent = words;
    trouble.hidden = !words;
  }

  let before = "";
  document.addEventListener("htmx:beforeRequest", () => {
    before = document.activeElement?.id ?? "";
    busy = true;
    page().setAttribute("aria-busy", "true");
    say("");
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const { status } = event.detail.xhr;
    busy = false;
    page().removeAttribute("aria-busy");
    // Keys that were meant for a page that did not come would act on another one.
    if (status < 200 || status > 299) pressed.length = 0;
    replay();
  });
  document.addEventListener("htmx:afterSettle", () => {
    const again = ["page-on", "page-back"].includes(before) ? document.getElementById(before) : null;
    const title = document.getElementById("title");
    const notice = document.getElementById("notice");
    (document.getElementById("all-the-same") ?? again ?? title)?.focus({ preventScroll: true });
    live.textContent = `${notice ? notice.textContent.trim() : ""} ${title ? title.textContent.trim() : ""}`;
    if (picks().some((pick) => pick.checked)) announceSelection();
    showCurrent();
  });
  document.addEventListener("htmx:sendError", () => say("The service does not answer. Nothing was changed; try again."));
  document.addEventListener("htmx:responseError", (event) => {
    const { status, responseText } = event.detail.xhr;
    if (status === 401) return location.assign("/sign-in");
    let words = `The service answered ${status}.`;
    try {
      words = JSON.parse(responseText).error ?? words;
    } catch {
      // An answer that is no JSON says no more than its status.
    }
    say(words);
  });

  function showCurrent() {
    const current = page().querySelector(".queue a[aria-current]");
    const list = current?.closest(".queue");
    if (list) list.scrollTop = current.offsetTop - list.offsetTop - list.clientHeight / 3;
  }
  showCurrent();
})();
