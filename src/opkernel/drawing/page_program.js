// A program of the page: its nodes, the tree of its scopes, and the drawing of the scopes that are open.
const TITLE = 20, PADDING = 10, LINE = 13, ARROW = 5, MARGIN = 12;
const MOST_BOXES = 60, MOST_FOLDED = 2, MOST_LISTED = 12, LONGEST = 44;
const HOT = [0.02, 0.1, 0.3];

const widthOf = (text, isBold) => {
  let width = 0;
  for (const sign of text) width += sign < "\u2e80" ? 6.4 : 11.5;
  return isBold ? width * 1.14 : width;
};
const shortened = (text, longest = LONGEST) => {
  if (text.length <= longest) return text;
  const half = (longest - 1) >> 1;
  return `${text.slice(0, half)}…${text.slice(-half)}`;
};
const timeText = (seconds) => `${(seconds * 1e3).toFixed(3)} ms`;
const endOf = (name) => name.slice(name.lastIndexOf("/") + 1);

class Program {
  constructor(data, number, all) {
    Object.assign(this, data, { number, all });
    this.leaves = new Map();
    this.total = Object.values(this.seconds).reduce((a, b) => a + b, 0);
    this.root = { label: "", name: "", children: [], parent: null, isOpen: true };
    this.root.children = this.tree.map((child) => this.item(child, this.root));
    this.measure(this.root);
    this.openFirst();
  }

  item(data, parent) {
    if (typeof data === "number" || typeof data[0] === "number") {
      const node = typeof data === "number" ? data : data[0];
      const leaf = { node, parent, label: typeof data === "number" ? endOf(this.names[node]) : data[1] };
      this.leaves.set(node, leaf);
      return leaf;
    }
    const [label, isPart, ...children] = data;
    const scope = { label, isPart, parent, isOpen: false };
    scope.children = children.map((child) => this.item(child, scope));
    return scope;
  }

  // Count the nodes and add up the times of scopes.
  measure(item) {
    if (!item.children) {
      item.count = 1;
      item.seconds = this.seconds[item.node] ?? 0;
      return;
    }
    item.count = item.seconds = 0;
    for (const child of item.children) {
      this.measure(child);
      item.count += child.count;
      item.seconds += child.seconds;
    }
  }

  // Open whole levels of scopes while there is room; else the scope that has most nodes of its level.
  openFirst() {
    let boxes = this.root.children.length, level = this.root.children.filter((one) => one.children);
    while (level.length) {
      const total = level.reduce((sum, one) => sum + one.count, 0);
      const added = level.reduce((sum, one) => sum + one.children.length, 0);
      if (boxes + added > MOST_BOXES) level = level.filter((one) => one.count > total / 2 && !one.isPart);
      if (level.reduce((sum, one) => sum + one.children.length, boxes) > 4 * MOST_BOXES) break;
      for (const one of level) {
        one.isOpen = true;
        boxes += one.children.length;
      }
      level = level.flatMap((one) => one.children.filter((child) => child.children));
    }
  }

  foldAll(item = this.root) {
    for (const child of item.children ?? []) {
      child.isOpen = false;
      this.foldAll(child);
    }
  }

  reveal(item) {
    for (let scope = item.parent; scope; scope = scope.parent) scope.isOpen = true;
  }

  facts(node) {
    const texts = this.all.texts;
    const [op, kind, kernel, outputs, details, functions, end] = this.all.facts[this.factsOf[node]];
    return {
      op: texts[op], kind: texts[kind], kernel: texts[kernel], functions, end,
      outputs: outputs.map((one) => texts[one]), details: details.map((one) => texts[one]),
    };
  }

  takes(node) {
    const inputs = this.inputs[node], found = [];
    for (let at = 0; at < inputs.length; at += 2) {
      const name = this.names[inputs[at]], end = this.all.texts[inputs[at + 1]];
      found.push(end === "^" ? `^${name}` : name + end);
    }
    return found;
  }

  // The leaf that shows a node: its own, or that of a node that it is folded into.
  shownAt(node) {
    if (this.leaves.has(node)) return this.leaves.get(node);
    this.takers ??= this.findTakers();
    const seen = new Set([node]);
    for (const one of seen) {
      for (const taker of this.takers.get(one) ?? []) {
        if (this.leaves.has(taker)) return this.leaves.get(taker);
        seen.add(taker);
      }
    }
    return null;
  }

  findTakers() {
    const takers = new Map();
    this.inputs.forEach((inputs, node) => {
      for (let at = 0; at < inputs.length; at += 2) listOf(takers, inputs[at]).push(node);
    });
    return takers;
  }

  // The edges between leaves: from, to, whether for control, whether back to the head of a loop.
  get edges() {
    if (this.knownEdges) return this.knownEdges;
    this.knownEdges = [];
    for (const [node, leaf] of this.leaves) {
      const inputs = this.inputs[node], end = this.all.facts[this.factsOf[node]][6];
      for (let at = 0; at < inputs.length; at += 2) {
        const source = this.leaves.get(inputs[at]);
        if (!source) continue;
        const isBack = end === 2 && this.all.facts[this.factsOf[inputs[at]]][6] === 1;
        this.knownEdges.push([source, leaf, this.all.texts[inputs[at + 1]] === "^", isBack]);
      }
    }
    return this.knownEdges;
  }

  textOf(item) {
    if (item.children) return `${this.pathOf(item)}\n${item.count.toLocaleString("en")} nodes`;
    const { node } = item, facts = this.facts(node), takes = this.takes(node);
    const lines = [this.names[node], `op: ${facts.op}`, ...facts.outputs.map((text) => `gives: ${text}`)];
    lines.push(...takes.slice(0, MOST_LISTED).map((text) => `takes: ${text}`));
    if (takes.length > MOST_LISTED) lines.push(`takes ${takes.length - MOST_LISTED} more`);
    if (facts.kernel) lines.push(`kernel: ${facts.kernel}`);
    if (node in this.seconds) lines.push(`time in a step: ${timeText(this.seconds[node])}`);
    return [...lines, ...facts.details].join("\n");
  }

  pathOf(item) {
    const labels = [];
    for (let one = item; one.parent; one = one.parent) if (!one.isPart || one === item) labels.unshift(one.label);
    return labels.join("/");
  }

  // The lines in the box of a node or of a closed scope: kinds and texts.
  linesOf(item) {
    return item.children ? this.scopeLines(item) : this.nodeLines(item);
  }

  nodeLines({ node, label }) {
    const facts = this.facts(node), folded = this.folded[node] ?? [];
    const lines = [["name", shortened(label) || "''"]];
    if (label.replace(/_\d+$/, "") !== facts.op) lines.push(["op", shortened(facts.op)]);
    for (const called of facts.functions.slice(0, 2)) lines.push(["op", shortened(`→ ${this.all.programs[called].label}`)]);
    if (facts.outputs.length) {
      const more = facts.outputs.length > 1 ? ` +${facts.outputs.length - 1}` : "";
      lines.push(["shape", shortened(facts.outputs[0]) + more]);
    }
    const shown = folded.length <= MOST_FOLDED ? folded : folded.slice(0, MOST_FOLDED - 1);
    const scope = this.names[node].slice(0, this.names[node].lastIndexOf("/") + 1);
    for (const [one, shape] of shown) {
      const name = this.names[one];
      const brief = scope && name.startsWith(scope) ? name.slice(scope.length) : name.split("/").slice(-2).join("/");
      lines.push(["folded", `+ ${shortened(brief, 24)} ${this.all.texts[shape]}`]);
    }
    if (folded.length > shown.length) lines.push(["folded", `+ ${folded.length - shown.length} more`]);
    if (node in this.seconds) lines.push(["time", timeText(this.seconds[node])]);
    return lines;
  }

  scopeLines(scope) {
    const lines = [["name", shortened(scope.isPart ? scope.label : `${scope.label}/`, scope.isPart ? 60 : LONGEST)]];
    lines.push(["op", `${scope.count.toLocaleString("en")} nodes`], ["op", shortened(this.commonOps(scope))]);
    if (scope.gives) lines.push(["shape", shortened(scope.gives)]);
    if (scope.seconds) lines.push(["time", timeText(scope.seconds)]);
    return lines;
  }

  // The two ops that say most of a scope: products and convolutions, then the commonest.
  commonOps(scope) {
    if (scope.common !== undefined) return scope.common;
    const counts = new Map(), stack = [scope];
    while (stack.length) {
      const item = stack.pop();
      if (item.children) stack.push(...item.children);
      else {
        const [op, kind] = this.all.facts[this.factsOf[item.node]];
        const found = counts.get(op) ?? { count: 0, isProduct: this.all.texts[kind] === "product" };
        counts.set(op, found);
        found.count += 1;
      }
    }
    const most = [...counts].sort((a, b) => b[1].isProduct - a[1].isProduct || b[1].count - a[1].count);
    scope.common = most.slice(0, 2).map(([op]) => this.all.texts[op]).join(", ");
    return scope.common;
  }

  // How hot an item is: 0 to 3, by its share of the time.
  heatOf(item) {
    const share = this.total ? item.seconds / this.total : 0;
    return HOT.filter((limit) => share >= limit).length;
  }

  // Lay out what is open: the frame of the root.
  frame() {
    return this.layOutScope(this.root, this.findStretches());
  }

  // What stands for an item: the outermost closed scope around it, or the item.
  visible(item, memo) {
    if (!item.parent) return item;
    const known = memo.get(item);
    if (known) return known;
    const around = this.visible(item.parent, memo);
    const found = around === item.parent && around.isOpen ? item : around;
    memo.set(item, found);
    return found;
  }

  // The lines in each open scope, by their ends.
  findStretches() {
    const memo = new Map(), pairs = new Map();
    for (const [source, taker, isControl, isBack] of this.edges) {
      const start = this.visible(source, memo), end = this.visible(taker, memo);
      if (start === end) continue;
      const own = pairs.get(start) ?? pairs.set(start, new Map()).get(start);
      const pair = own.get(end) ?? { start, end, count: 0, isControl: true, isBack: true };
      own.set(end, pair);
      pair.count += 1;
      if (!isControl && start.children) start.gives = this.facts(source.node).outputs[0];
      pair.isControl &&= isControl;
      pair.isBack &&= isBack;
    }
    const stretches = new Map();
    for (const own of pairs.values()) for (const pair of own.values()) addRoute(stretches, pair);
    return stretches;
  }

  layOutScope(scope, stretches) {
    const frame = { scope, box: { width: 0, height: 0, isOpen: true, x: 0, y: 0 }, frames: new Map(), drawn: new Map() };
    Object.assign(frame, { ports: { top: new Map(), bottom: new Map() }, edges: [] });
    const boxes = [];
    for (const child of scope.children) {
      if (child.isOpen) {
        const inner = this.layOutScope(child, stretches);
        frame.frames.set(child, inner);
        boxes.push(inner.box);
      } else {
        const lines = this.linesOf(child);
        const width = Math.max(...lines.map(([kind, text]) => widthOf(text, kind === "name"))) + 16;
        const box = { width, height: LINE * lines.length + 9, x: 0, y: 0 };
        frame.drawn.set(child, { box, lines });
        boxes.push(box);
      }
    }
    for (const stretch of stretches.get(scope)?.values() ?? []) frame.edges.push(edgeOf(frame, stretch));
    const every = [...frame.ports.top.values(), ...boxes, ...frame.ports.bottom.values()];
    [frame.width, frame.height] = layOut(every, frame.edges.map((edge) => edge.link));
    if (scope.parent) fitFrame(frame);
    return frame;
  }
}

// The lines of a pair, one in each open scope that it passes.
const addRoute = (stretches, pair) => {
  const start = pathTo(pair.start), end = pathTo(pair.end);
  let top = 0;
  while (start[top + 1] === end[top + 1]) top += 1;
  const add = (place, from, to) => {
    const own = stretches.get(place) ?? stretches.set(place, new Map()).get(place);
    const key = [from, to].map(([item, at]) => `${numberOf(item)} ${numberOf(at)}`).join(" ");
    const stretch = own.get(key) ?? { from, to, count: 0, isControl: true, isBack: true, pairs: [] };
    own.set(key, stretch);
    stretch.count += pair.count;
    stretch.isControl &&= pair.isControl;
    stretch.isBack &&= pair.isBack;
    stretch.pairs.push(pair);
  };
  const key = pair.start;
  for (let depth = start.length - 2; depth > top; depth -= 1) add(start[depth], [start[depth + 1], key], [null, key]);
  add(start[top], [start[top + 1], key], [end[top + 1], key]);
  for (let depth = top + 1; depth < end.length - 1; depth += 1) add(end[depth], [null, key], [end[depth + 1], key]);
};
const pathTo = (item) => {
  const path = [];
  for (let one = item; one; one = one.parent) path.unshift(one);
  return path;
};
let items = 0;
const numberOf = (item) => (item ? (item.number ??= ++items) : 0);

const edgeOf = (frame, stretch) => {
  const [upper, upperAt] = touched(frame, stretch.from, "bottom"), [lower, lowerAt] = touched(frame, stretch.to, "top");
  const link = { upper, lower, upperAt, lowerAt, isBack: false };
  if (stretch.isBack && stretch.from[0] && stretch.to[0]) turn(link);
  return { link, stretch, hasArrow: stretch.to[0] && !frame.frames.has(stretch.to[0]) };
};

// The box that a line touches at a side, and where.
const touched = (frame, [item, key], side) => {
  if (!item) {
    const box = portOf(frame, key, side === "bottom" ? "top" : "bottom");
    return [box, box.width / 2];
  }
  const inner = frame.frames.get(item);
  if (inner) {
    const box = portOf(inner, key, side);
    return [inner.box, PADDING + box.x + box.width / 2];
  }
  const { box } = frame.drawn.get(item);
  return [box, box.width / 2];
};
const portOf = (frame, key, side) => {
  const ports = frame.ports[side];
  return ports.get(key) ?? ports.set(key, { width: 6, height: 0, place: side, x: 0, y: 0 }).get(key);
};

// Give an open scope the size that it takes with its title, and have lines reach its rim.
const fitFrame = (frame) => {
  frame.width = Math.max(frame.width, widthOf(shortened(frame.scope.label), true) + 14 - PADDING);
  frame.box.width = frame.width + 2 * PADDING;
  frame.box.height = frame.height + TITLE + PADDING;
  for (const { link } of frame.edges) {
    if (link.upper.place === "top") link.points.unshift([link.points[0][0], -TITLE]);
    if (link.lower.place === "bottom") link.points.push([link.points.at(-1)[0], frame.height + PADDING]);
  }
};
