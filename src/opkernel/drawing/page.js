"use strict";
const $ = (id) => document.getElementById(id);
const nodes = [...document.querySelectorAll("[data-name]")];
const names = nodes.flatMap((node) => {
  const folded = (node.dataset.folded || "").split("\n").filter(Boolean);
  const told = node.querySelector("title").textContent.split("\n").filter((line) => !line.startsWith("takes"));
  return [
    { name: node.dataset.name, text: told.join("\n").toLowerCase(), node },
    ...folded.map((name) => ({ name, text: name.toLowerCase(), node })),
  ];
});
let wanted = null;
const describe = (group) => { $("details").textContent = group.querySelector("title").textContent; };
const mark = (group) => {
  document.querySelectorAll(".ok-found").forEach((one) => one.classList.remove("ok-found"));
  group.classList.add("ok-found");
  describe(group);
};
const goTo = (node) => {
  mark(node);
  wanted = node;
  const hash = `#${node.closest("section").id}`;
  if (location.hash === hash) show();
  else location.hash = hash;
};
const show = () => {
  if (wanted) wanted.scrollIntoView({ block: "center", inline: "center" });
  else document.querySelector("main").scrollTo(0, 0);
  wanted = null;
};
$("search").addEventListener("input", () => {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = words.length ? names.filter(({ text }) => words.every((word) => text.includes(word))) : [];
  $("found").replaceChildren(...matches.slice(0, 200).map(({ name, node }) => {
    const button = document.createElement("button");
    button.textContent = name;
    button.addEventListener("click", () => goTo(node));
    const item = document.createElement("li");
    item.append(button);
    return item;
  }));
  $("count").textContent = words.length ? `${matches.length} found` : "";
});
$("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter") $("found").querySelector("button")?.click();
});
document.querySelector("main").addEventListener("click", (event) => {
  const group = event.target.closest(".ok-node, .ok-port, .ok-frame");
  if (group) mark(group);
});
$("fit").addEventListener("click", () => document.querySelector("main").classList.toggle("fit"));
$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
});
window.addEventListener("hashchange", show);
