"use strict";
// The server renders everything. This script loads the page again, and puts the new content in place of the old.
(() => {
  const live = document.getElementById("live"), pause = document.getElementById("pause");
  let paused = false, loading = false, next = 0;

  function say(state, text) {
    live.className = "live " + state;
    if (live.textContent !== text) live.textContent = text;
    document.body.classList.toggle("stale", state === "off");
  }

  // show replaces the content. The focus and the position of the list of gates stay.
  function show(main) {
    const old = document.querySelector("main"), top = old.querySelector(".gates")?.scrollTop;
    const active = old.contains(document.activeElement) ? document.activeElement : null, href = active?.getAttribute("href");
    const focus = active?.matches(".gates") ? ".gates" : href && 'a[href="' + CSS.escape(href) + '"]';
    old.replaceWith(main);
    if (top) main.querySelector(".gates")?.scrollTo(0, top);
    if (focus) main.querySelector(focus)?.focus({ preventScroll: true });
  }

  // update loads the page every second, and at most a tenth of the time, but at least every 10 s. A page that is
  // hidden is not loaded. If the program was restarted, connections have other numbers, and all is loaded again.
  async function update() {
    if (paused || document.hidden) { say("", paused ? "paused" : "not live while hidden"); return; }
    const begin = performance.now();
    if (loading || begin < next) return;
    loading = true;
    let wait = 2000, problem = "the program does not answer";
    try {
      const here = location.pathname + location.search; // without a user and password
      const answer = await fetch(here, { cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (!answer.ok) problem = "the server answered " + answer.status + " " + answer.statusText;
      const main = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main[data-boot]");
      if (answer.ok && !main) problem = "the server shows another page";
      if (!main) throw new Error(problem);
      if (main.dataset.boot !== document.querySelector("main").dataset.boot) { location.reload(); return; }
      wait = Math.min(10000, Math.max(900, 9 * (performance.now() - begin)));
      if (paused) return;
      if (!getSelection().isCollapsed) { say("", "not live while text is selected"); return; }
      if (!document.querySelector("main a:active")) show(main); // else the click would be lost
      say("on", "live");
    } catch {
      say("off", "not live: " + problem);
    } finally {
      loading = false;
      next = performance.now() + wait;
    }
  }

  function updateNow() { next = 0; update(); }

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Continue" : "Pause";
    updateNow();
  });
  document.addEventListener("visibilitychange", updateNow);
  setInterval(update, 100);
})();
