// Updates the view, and adds buttons that copy commands. Without it, every view still works.
"use strict";
(() => {
  const said = (text) => { const p = document.getElementById("said"); if (p) p.textContent = text; };

  // An old view must not look like a new one.
  const old = (text) => {
    let p = document.getElementById("old");
    if (!text) { if (p) p.remove(); return; }
    if (!p) {
      p = document.createElement("p");
      p.id = "old"; p.className = "alarm"; p.setAttribute("role", "alert");
    }
    if (p.textContent !== text) p.textContent = text;
    const main = document.getElementById("main");
    if (p.nextElementSibling !== main) main.before(p);
  };

  const addCopyButtons = (root) => {
    if (!navigator.clipboard) return;
    for (const code of root.querySelectorAll(".copy")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copier";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        try { await navigator.clipboard.writeText(code.textContent); said("Copied"); button.textContent = "Copied"; }
        catch { said("The browser does not allow copying"); }
      });
      code.after(button);
    }
  };

  let tag = "";
  const every = (main) => (main.hasAttribute("data-pending") ? 1000 : 10000);

  const replace = (main, next) => {
    const open = new Map([...main.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
    const focused = main.contains(document.activeElement) ? document.activeElement : null;
    const place = focused && (focused.id ? "#" + CSS.escape(focused.id) : focused.getAttribute("href") ? "a[href=\"" + CSS.escape(focused.getAttribute("href")) + "\"]" : "");
    const scrolled = [...main.querySelectorAll(".wide")].map((w) => w.scrollLeft);
    const made = document.importNode(next, true);
    for (const [id, was] of open) { const d = made.querySelector("#" + CSS.escape(id)); if (d) d.open = was; }
    addCopyButtons(made);
    main.replaceWith(made);
    [...made.querySelectorAll(".wide")].forEach((w, i) => { w.scrollLeft = scrolled[i] || 0; });
    if (focused === main) made.focus({ preventScroll: true });
    else if (place) { const again = made.querySelector(place); if (again) again.focus({ preventScroll: true }); }
  };

  const update = async () => {
    const main = document.getElementById("main");
    const busy = document.hidden || String(getSelection()) !== "" || [...main.querySelectorAll("details[open]:not([id])")].length > 0;
    if (!busy) {
      try {
        const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store", redirect: "error" });
        if (answer.status === 403) { old("The session has ended, and this view is old: run landwaiter ui again"); return; }
        old(answer.ok || answer.status === 304 ? "" : "landwaiter ui cannot update this view: it may be old");
        if (answer.ok) {
          tag = answer.headers.get("ETag") || "";
          const next = new DOMParser().parseFromString(await answer.text(), "text/html");
          const made = next.getElementById("main");
          if (made && made.innerHTML !== pristine) {
            pristine = made.innerHTML;
            replace(main, made);
          }
          const at = document.getElementById("as-of"), then = next.getElementById("as-of");
          if (at && then) at.textContent = then.textContent;
        }
      } catch { old("landwaiter ui does not answer: this view may be old"); }
    }
    setTimeout(update, every(document.getElementById("main")));
  };

  const main = document.getElementById("main");
  let pristine = main ? main.innerHTML : "";
  addCopyButtons(document);
  if (main && main.hasAttribute("data-live")) setTimeout(update, every(main));
})();
