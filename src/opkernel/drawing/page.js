// The page: draws programs, and answers clicks, keys, the search and the address.
const $ = (id) => document.getElementById(id);
const main = document.querySelector("main");
const inflate = async () => {
  const bytes = Uint8Array.from(atob($("data").textContent), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
};
const html = (tag, attrs, ...inside) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
};
const svg = (tag, attrs, ...inside) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attrs)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
};
const button = (text, act) => {
  const made = html("button", { type: "button" }, text);
  made.addEventListener("click", act);
  return made;
};

const made = new Map(); // programs by their numbers
let all, current, selected, zoom = 1, shown = new Map(), edges = [];
const programOf = (number) => made.get(number) ?? made.set(number, new Program(all.programs[number], number, all)).get(number);

// Drawing.

const pathData = (points) => points.map(([x, y], at) => {
  const place = `${x.toFixed(1)} ${y.toFixed(1)}`;
  if (!at) return `M${place}`;
  const [fromX, fromY] = points[at - 1];
  if (Math.abs(x - fromX) < 0.5 || Math.abs(y - fromY) < 0.5) return `L${place}`;
  const middle = ((fromY + y) / 2).toFixed(1);
  return `C${fromX.toFixed(1)} ${middle} ${x.toFixed(1)} ${middle} ${place}`;
}).join("");

const drawEdge = ({ link, stretch, hasArrow }) => {
  const kind = `ok-edge${stretch.isControl ? " ok-control" : ""}${link.isBack ? " ok-back" : ""}`;
  const points = link.isBack ? link.points.toReversed() : link.points;
  const group = svg("g", {}, svg("path", { class: kind, d: pathData(points) }));
  if (stretch.count > 1) {
    group.append(svg("title", {}, `${stretch.count.toLocaleString("en")} edges`));
    group.firstChild.setAttribute("stroke-width", Math.min(1 + Math.log2(stretch.count) / 4, 2.5).toFixed(1));
  }
  if (hasArrow) {
    const [x, y] = points.at(-1), back = y >= points.at(-2)[1] ? -ARROW : ARROW;
    const d = `M${x.toFixed(1)} ${y.toFixed(1)}l${(-ARROW / 1.6).toFixed(1)} ${back.toFixed(1)}h${(ARROW * 1.25).toFixed(1)}z`;
    group.append(svg("path", { class: `${kind} ok-arrow`, d }));
  }
  edges.push({ group, stretch });
  return group;
};

const drawBox = (item, { box, lines }) => {
  const kind = item.children ? "scope" : current.facts(item.node).kind, heat = current.heatOf(item);
  const group = svg("g", {
    class: `ok-node ok-${kind}${heat ? ` ok-hot${heat}` : ""}`,
    transform: `translate(${box.x.toFixed(1)} ${box.y.toFixed(1)})`,
  });
  group.append(svg("title", {}, item.children ? `${current.textOf(item)}\nclick to open` : current.names[item.node]));
  group.append(svg("rect", { width: box.width.toFixed(1), height: box.height.toFixed(1), rx: item.children ? 9 : 4 }));
  lines.forEach(([name, text], at) => {
    group.append(svg("text", { class: `ok-${name}`, x: (box.width / 2).toFixed(1), y: 16 + LINE * at }, text));
  });
  group.addEventListener("click", () => (item.children ? toggle(item) : select(item)));
  shown.set(item, group);
  return group;
};

const drawFrame = (frame, x, y) => {
  const inside = svg("g", { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
  for (const [item, inner] of frame.frames) {
    const { box } = inner, at = { x: box.x.toFixed(1), y: box.y.toFixed(1) };
    const rect = svg("rect", { ...at, width: box.width.toFixed(1), height: box.height.toFixed(1), rx: 6 });
    const title = svg("text", { x: (box.x + 8).toFixed(1), y: (box.y + 14).toFixed(1) }, `− ${shortened(item.label)}`);
    title.addEventListener("click", () => toggle(item));
    const group = svg("g", { class: "ok-frame" }, svg("title", {}, current.textOf(item)), rect);
    group.append(drawFrame(inner, box.x + PADDING, box.y + TITLE), title);
    shown.set(item, group);
    inside.append(group);
  }
  for (const edge of frame.edges) inside.append(drawEdge(edge));
  for (const [item, drawn] of frame.drawn) inside.append(drawBox(item, drawn));
  return inside;
};

const draw = () => {
  shown = new Map();
  edges = [];
  const frame = current.frame(), width = frame.width + 2 * MARGIN, height = frame.height + 2 * MARGIN;
  const view = svg("svg", { class: "ok-view", role: "img", viewBox: `0 0 ${width.toFixed(0)} ${height.toFixed(0)}` });
  view.append(drawFrame(frame, MARGIN, MARGIN));
  main.replaceChildren(view);
  scale();
  if (selected) mark(selected);
};
const scale = () => {
  const view = main.querySelector("svg"), { width, height } = view.viewBox.baseVal;
  view.setAttribute("width", (width * zoom).toFixed(0));
  view.setAttribute("height", (height * zoom).toFixed(0));
};

// Open or fold a scope; it stays where it is on the screen.
const toggle = (item) => {
  const before = shown.get(item)?.getBoundingClientRect();
  item.isOpen = !item.isOpen;
  select(item.isOpen ? null : item);
  draw();
  $("details").textContent = current.textOf(item);
  const after = shown.get(item)?.getBoundingClientRect();
  if (before && after) main.scrollBy(after.x + after.width / 2 - before.x - before.width / 2, after.y - before.y);
};

// Choosing.

const mark = (item) => {
  document.querySelectorAll(".ok-found, .ok-touched").forEach((one) => one.classList.remove("ok-found", "ok-touched"));
  if (!item) return;
  shown.get(item)?.classList.add("ok-found");
  for (const { group, stretch } of edges) {
    if (stretch.pairs.some(({ start, end }) => start === item || end === item)) group.classList.add("ok-touched");
  }
};
const select = (item) => {
  selected = item;
  mark(item);
  const functions = item && !item.children ? current.facts(item.node).functions : [];
  $("calls").replaceChildren(...functions.map((number) => button(`open ${all.programs[number].label}`, () => go(number))));
  if (item) $("details").textContent = current.textOf(item);
};
const go = (number, node) => {
  const hash = node === undefined ? `#${number}` : `#${number}:${node}`;
  if (location.hash !== hash) history.pushState(null, "", hash);
  visit();
};
// Show what the address names: a program, and perhaps one of its nodes.
const visit = () => {
  const [number, node] = location.hash.slice(1).split(":").map(Number);
  const next = programOf(number in all.programs ? number : 0), isOther = next !== current;
  current = next;
  if (isOther) describe();
  const item = Number.isInteger(node) ? current.shownAt(node) : null;
  if (item) current.reveal(item);
  selected = item;
  draw();
  select(item);
  if (Number.isInteger(node) && !item) $("details").textContent = current.textOf({ node });
  if (item) shown.get(item)?.scrollIntoView({ block: "center", inline: "center" });
  else if (isOther) shown.get(current.root.children[0])?.scrollIntoView({ block: "center", inline: "center" });
};

// The side.

const describe = () => {
  const parts = [`${current.names.length.toLocaleString("en")} operations`];
  const measured = current.number ? current.total : current.total + all.unmeasured;
  if (measured) parts.push(`${timeText(measured)} a step`);
  if (current.note) parts.push(current.note);
  $("facts").textContent = `${current.label}: ${parts.join(", ")}`;
  $("programs").replaceChildren(...all.programs.map(({ label, kind }, number) => {
    const name = kind === "graph" ? label : `${kind} ${label}`;
    const link = html("a", { href: `#${number}` }, name);
    if (number === current.number) link.setAttribute("aria-current", "true");
    return html("li", {}, link);
  }));
  $("tree").replaceChildren(...branches(current.root));
};
// The clusters of engines, each with its operations when it is unfolded.
const clusters = () => all.clusters.map(({ label, seconds, parts }) => {
  const faint = (text) => html("span", { class: "ok-faint" }, ` ${text}`);
  const rows = parts.map(([name, took, number, node]) => {
    const text = number === undefined ? name : button(name, () => go(number, node));
    return html("li", {}, text, ...(took ? [faint(timeText(took))] : []));
  });
  const count = `${parts.length.toLocaleString("en")} operations, ${timeText(seconds)}`;
  return html("li", {}, html("details", {}, html("summary", {}, label, faint(count)), html("ul", {}, ...rows)));
});
// The scopes in a scope, each with its own when it is unfolded.
const branches = (scope) => scope.children.filter((one) => one.children).map((one) => {
  const reveal = button(one.label, () => {
    current.reveal(one);
    draw();
    select(one);
    shown.get(one)?.scrollIntoView({ block: "start", inline: "center" });
  });
  const count = html("span", { class: "ok-faint" }, ` ${one.count.toLocaleString("en")}`);
  if (!one.children.some((child) => child.children)) return html("li", {}, reveal, count);
  const inside = html("ul", {}), details = html("details", {}, html("summary", {}, reveal, count), inside);
  details.addEventListener("toggle", () => {
    if (details.open && !inside.firstChild) inside.append(...branches(one));
  });
  return html("li", {}, details);
});

const search = () => {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  let count = 0;
  if (words.length) {
    all.lower ??= all.facts.map(([op, , kernel, outputs, details]) => (
      [op, kernel, ...outputs, ...details].map((one) => all.texts[one]).join("\n").toLowerCase()));
    all.programs.forEach(({ names, factsOf }, number) => names.forEach((name, node) => {
      const text = name.toLowerCase(), facts = all.lower[factsOf[node]];
      if (!words.every((word) => text.includes(word) || facts.includes(word))) return;
      count += 1;
      if (found.length < 200) found.push(html("li", {}, button(name, () => go(number, node))));
    }));
  }
  $("found").replaceChildren(...found);
  $("count").textContent = words.length ? `${count.toLocaleString("en")} found` : "";
};

const start = async () => {
  all = await inflate();
  // What engines took beyond the operations that they measure, which have times in the drawing.
  all.unmeasured = all.clusters.reduce((sum, { seconds, parts }) => (
    sum + Math.max(0, seconds - parts.reduce((inside, [, took]) => inside + took, 0))), 0);
  $("clusters").replaceChildren(...clusters());
  $("search").addEventListener("input", search);
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") $("found").querySelector("button")?.click();
  });
  const zoomTo = (to) => {
    zoom = Math.min(Math.max(to, 0.05), 4);
    scale();
  };
  $("larger").addEventListener("click", () => zoomTo(zoom * 1.25));
  $("smaller").addEventListener("click", () => zoomTo(zoom / 1.25));
  $("fit").addEventListener("click", () => {
    const { width } = main.querySelector("svg").viewBox.baseVal, most = (main.clientWidth - 30) / width;
    zoomTo(zoom === 1 ? Math.min(1, most) : 1);
  });
  $("close").addEventListener("click", () => {
    current.foldAll();
    select(null);
    draw();
  });
  main.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoomTo(zoom * (event.deltaY < 0 ? 1.1 : 1 / 1.1));
  }, { passive: false });
  $("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });
  window.addEventListener("hashchange", visit);
  visit();
  document.documentElement.dataset.drawn = "true";
};
start().catch((error) => {
  main.textContent = `This browser cannot draw the page: ${error.message}. Browsers of 2023 or later can.`;
  throw error;
});
