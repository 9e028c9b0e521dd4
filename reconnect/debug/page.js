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
    const focus = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
    old.replaceWith(main);
    if (top) main.querySelector(".gates")?.scrollTo(0, top);
    if (focus) main.querySelector('a[href="' + CSS.escape(focus) + '"]')?.focus({ preventScroll: true });
  }

  // update loads the page every second, and at most a tenth of the time. A page that is hidden is not loaded.
  async function update() {
    if (paused || document.hidden) { say("", paused ? "paused" : "not live while hidden"); return; }
    const begin = performance.now();
    if (loading || begin < next) return;
    loading = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (!answer.ok && answer.status !== 404) throw new Error(answer.statusText);
      const main = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
      if (paused) return;
      if (!document.querySelector("main a:active")) show(main); // else the click would be lost
      say("on", "live");
    } catch {
      say("off", "not live: the program does not answer");
    } finally {
      loading = false;
      next = performance.now() + Math.max(900, 9 * (performance.now() - begin));
    }
  }

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Continue" : "Pause";
    update();
  });
  document.addEventListener("visibilitychange", update);
  setInterval(update, 100);
})();
