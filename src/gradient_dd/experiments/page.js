// The page works without this script. It keeps the choice of tuning in the address, announces it to screen readers,
// opens the details that contain the target of a link, and selects the figure that a claim names.
"use strict";
(() => {
  const radios = document.querySelectorAll("input[name=tuning]"), say = document.getElementById("say");
  const asked = new URLSearchParams(location.search).get("tuning");
  const wanted = [...radios].find(one => one.value === asked && !one.disabled);
  if (wanted) wanted.checked = true;
  radios.forEach(one => one.addEventListener("change", () => {
    const counts = [...document.querySelectorAll(".score .big")].find(list => list.offsetParent);
    say.textContent = `Learners tuned ${one.nextElementSibling.textContent}: ${counts ? counts.innerText.replace(/\s+/g, " ") : ""}`;
    try { history.replaceState(null, "", `?tuning=${one.value}${location.hash}`); } catch { /* a sandboxed frame */ }
  }));
  const show = name => {
    const tab = document.getElementById("r-" + name) || document.querySelector(`[id^="r-${CSS.escape(name)}-"]`);
    if (!tab) return;
    tab.checked = true;
    tab.closest(".figs").scrollIntoView({ block: "start" });
    tab.focus({ preventScroll: true });
  };
  document.querySelectorAll("[data-fig]").forEach(link => link.addEventListener("click", event => {
    event.preventDefault();
    show(link.dataset.fig);
  }));
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let box = target && target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    if (target && target.matches("details")) target.open = true;
    if (target && location.hash) target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  if (location.hash) open();
})();
