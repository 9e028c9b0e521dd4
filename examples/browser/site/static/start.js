"use strict";
// Starts the program, and tells the venue which trouble to make.
(async () => {
  const say = (text) => { document.getElementById("detail").textContent = text };
  try {
    const go = new Go();
    const { instance } = await WebAssembly.instantiateStreaming(fetch("page.wasm"), go.importObject);
    go.run(instance).then(() => say("the program has ended: reload the page"));
  } catch (err) {
    document.getElementById("state").textContent = "failed";
    say(String(err));
  }
})();
document.getElementById("kick").addEventListener("click", () => { note("", "you: dial now"); redial.kick() });
document.getElementById("check").addEventListener("click", () => { note("", "you: ask the venue"); redial.check() });
for (const button of document.querySelectorAll("#trouble button")) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await fetch("trouble/" + button.dataset.do, { method: "POST" });
    } catch { // the server is away, which the page shows
    } finally {
      button.disabled = false;
    }
  });
}
