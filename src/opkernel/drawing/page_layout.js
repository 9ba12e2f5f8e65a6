// Layered layout of boxes and links, as layout.py does it for notebooks: rows, sweeps of barycentres, least squares in a row.
const GAP = 18, JOINT_GAP = 8, ROW_GAP = 34, BESIDE = 7, PASSES = 12, SWEEPS = 10;
const WIDEST_ROW = 1100, JOINT_WIDTH = 12, NARROWEST = 700, STRAIGHT = 6;

const listOf = (map, key) => {
  if (!map.has(key)) map.set(key, []);
  return map.get(key);
};

const turn = (link) => {
  [link.upper, link.lower] = [link.lower, link.upper];
  [link.upperAt, link.lowerAt] = [link.lowerAt, link.upperAt];
  link.isBack = !link.isBack;
};

// Turn round the links that lead back to a box on the way to them, first boxes first.
const turnBackLinks = (boxes, links) => {
  const outgoing = new Map();
  for (const link of links) listOf(outgoing, link.upper).push(link);
  const done = new Set();
  for (const start of boxes) {
    if (done.has(start)) continue;
    const onWay = new Set([start]);
    const stack = [[start, 0, outgoing.get(start) ?? []]];
    while (stack.length) {
      const top = stack.at(-1), link = top[2][top[1]++];
      if (!link) {
        stack.pop();
        onWay.delete(top[0]);
        done.add(top[0]);
      } else if (onWay.has(link.lower)) turn(link);
      else if (!done.has(link.lower)) {
        onWay.add(link.lower);
        stack.push([link.lower, 0, outgoing.get(link.lower) ?? []]);
      }
    }
  }
};

// The boxes, each after the boxes that lead to it.
const inOrder = (boxes, sources, targets) => {
  const inside = new Set(boxes), waits = new Map();
  for (const box of boxes) waits.set(box, (sources.get(box) ?? []).filter((one) => inside.has(one)).length);
  const order = boxes.filter((box) => !waits.get(box));
  for (const box of order) {
    for (const target of targets.get(box) ?? []) {
      if (!inside.has(target)) continue;
      waits.set(target, waits.get(target) - 1);
      if (!waits.get(target)) order.push(target);
    }
  }
  return order;
};

// The row of each box: after the boxes that lead to it, and where the row is not too wide.
const ranksOf = (boxes, links) => {
  const sources = new Map(), targets = new Map(), ranks = new Map(), widths = [];
  for (const { upper, lower } of links) {
    listOf(sources, lower).push(upper);
    listOf(targets, upper).push(lower);
  }
  for (const box of boxes) if (box.place === "top") ranks.set(box, 0);
  const first = ranks.size ? 1 : 0;
  const order = inOrder(boxes.filter((box) => !box.place), sources, targets);
  for (const box of order) {
    let rank = first;
    for (const source of sources.get(box) ?? []) rank = Math.max(rank, ranks.get(source) + 1);
    while (widths[rank] && widths[rank] + box.width > WIDEST_ROW) rank += 1;
    ranks.set(box, rank);
    widths[rank] = (widths[rank] ?? 0) + box.width;
  }
  for (const box of order.toReversed()) { // a box that nothing leads to stands just above its use
    if (sources.has(box)) continue;
    let below = Infinity;
    for (const one of targets.get(box) ?? []) below = Math.min(below, ranks.get(one) ?? Infinity);
    if (below === Infinity || (widths[below - 1] ?? 0) + box.width > WIDEST_ROW) continue;
    widths[ranks.get(box)] -= box.width;
    ranks.set(box, below - 1);
    widths[below - 1] = (widths[below - 1] ?? 0) + box.width;
  }
  const last = Math.max(-1, ...ranks.values()) + 1;
  for (const box of boxes) if (box.place === "bottom") ranks.set(box, last);
  return ranks;
};

class Layers {
  constructor(boxes, links) {
    turnBackLinks(boxes, links);
    const ranks = ranksOf(boxes, links);
    this.rows = Array.from({ length: Math.max(-1, ...ranks.values()) + 1 }, () => []);
    for (const box of boxes) this.rows[ranks.get(box)].push(box);
    this.above = new Map();
    this.below = new Map();
    this.chains = new Map();
    this.join(links, ranks);
    this.order();
  }

  // Have each link lead from row to row; links from one place share their joints.
  join(links, ranks) {
    const joints = new Map(), known = new Map();
    for (const link of links) {
      const chain = [link.upper];
      for (let rank = ranks.get(link.upper) + 1; rank < ranks.get(link.lower); rank += 1) {
        const own = joints.get(link.upper) ?? joints.set(link.upper, new Map()).get(link.upper);
        const key = `${link.upperAt} ${link.isBack} ${rank}`;
        if (!own.has(key)) {
          const joint = { width: JOINT_WIDTH, height: 0, isJoint: true, x: 0, y: 0 };
          own.set(key, joint);
          this.rows[rank].splice(this.rows[rank].length >> 1, 0, joint);
        }
        chain.push(own.get(key));
      }
      chain.push(link.lower);
      this.chains.set(link, chain.slice(1, -1));
      for (let at = 1; at < chain.length; at += 1) {
        const upper = chain[at - 1], lower = chain[at];
        const leaves = upper === link.upper ? link.upperAt : JOINT_WIDTH / 2;
        const arrives = lower === link.lower ? link.lowerAt : JOINT_WIDTH / 2;
        const own = known.get(upper) ?? known.set(upper, new Map()).get(upper);
        const seen = listOf(own, lower), key = `${leaves} ${arrives}`;
        if (seen.includes(key)) continue;
        seen.push(key);
        listOf(this.below, upper).push([lower, leaves, arrives]);
        listOf(this.above, lower).push([upper, arrives, leaves]);
      }
    }
  }

  order() {
    let best = this.rows.map((row) => [...row]), fewest = this.crossings();
    for (let sweep = 0; sweep < SWEEPS && fewest; sweep += 1) {
      const goesDown = sweep % 2 === 0;
      const neighbours = goesDown ? this.above : this.below;
      const rows = goesDown ? this.rows : this.rows.toReversed();
      for (let at = 1; at < rows.length; at += 1) sortByBarycentre(rows[at], rows[at - 1], neighbours);
      const crossings = this.crossings();
      if (crossings < fewest) [best, fewest] = [this.rows.map((row) => [...row]), crossings];
    }
    this.rows = best;
  }

  crossings() {
    let count = 0;
    for (let at = 1; at < this.rows.length; at += 1) {
      const places = new Map(this.rows[at].map((box, place) => [box, place]));
      const seen = [];
      for (const box of this.rows[at - 1]) {
        const ends = (this.below.get(box) ?? []).map(([lower, , to]) => places.get(lower) + to * 1e-5);
        for (const end of ends) count += seen.length - placeIn(seen, end);
        for (const end of ends) seen.splice(placeIn(seen, end), 0, end);
      }
    }
    return count;
  }
}

// Where a number belongs in a sorted list, behind equal ones.
const placeIn = (sorted, number) => {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= number) low = middle + 1;
    else high = middle;
  }
  return low;
};

// Order a row by the middles of the neighbours of its boxes; boxes without neighbours stay near.
const sortByBarycentre = (row, fixed, neighbours) => {
  const places = new Map(fixed.map((box, place) => [box, place]));
  const keys = new Map();
  let last = -1;
  for (const box of row) {
    const linked = (neighbours.get(box) ?? []).map(([other, , at]) => places.get(other) + 1e-3 * at);
    if (linked.length) last = linked.reduce((a, b) => a + b) / linked.length;
    keys.set(box, last);
  }
  row.sort((a, b) => keys.get(a) - keys.get(b));
};

// Put the boxes of a row as near to the boxes that they are linked to as there is room.
const placeRow = (row, sides) => {
  const pools = [], offsets = [];
  let offset = 0;
  row.forEach((box, number) => {
    const before = row[number - 1];
    if (before) offset += before.width + (before.isJoint && box.isJoint ? JOINT_GAP : GAP);
    offsets.push(offset);
    let weight = 1e-3, total = 1e-3 * box.x;
    for (const side of sides) {
      for (const [other, ownAt, otherAt] of side.get(box) ?? []) {
        const pull = box.isJoint && other.isJoint ? STRAIGHT : 1;
        weight += pull;
        total += pull * (other.x + otherAt - ownAt);
      }
    }
    let pool = [weight, total - weight * offset, 1];
    while (pools.length && pools.at(-1)[1] / pools.at(-1)[0] > pool[1] / pool[0]) {
      const last = pools.pop();
      pool = pool.map((value, at) => value + last[at]);
    }
    pools.push(pool);
  });
  let number = 0;
  for (const [weight, total, count] of pools) {
    for (let i = 0; i < count; i += 1, number += 1) row[number].x = total / weight + offsets[number];
  }
};

const placeInRows = (layers) => {
  for (const row of layers.rows) {
    let x = 0;
    for (const box of row) {
      box.x = x;
      x += box.width + GAP;
    }
  }
  const both = [layers.above, layers.below];
  for (let pass = 0; pass < PASSES; pass += 1) {
    const sides = pass < PASSES - 2 ? [both[pass % 2]] : both;
    for (const row of pass % 2 ? layers.rows.toReversed() : layers.rows) placeRow(row, sides);
  }
};

// Rows of boxes that nothing is linked to.
const wrapped = (boxes, width) => {
  const rows = [];
  let x = 0;
  for (const box of boxes) {
    if (!rows.length || x + box.width > width) {
      rows.push([]);
      x = 0;
    }
    rows.at(-1).push(box);
    box.x = x;
    x += box.width + GAP;
  }
  return rows;
};

// Put the rows one below the other; the height of all.
const placeRows = (rows) => {
  let y = 0;
  for (const row of rows) {
    const height = row.reduce((most, box) => Math.max(most, box.height), 0);
    for (const box of row) {
      box.y = box.isJoint ? y : y + (height - box.height) / 2;
      if (box.isJoint) box.height = height;
    }
    y += height + ROW_GAP;
  }
  return Math.max(y - ROW_GAP, 0);
};

// The line of a link: straight where it passes a row, so that it meets no box. A back link goes round open boxes.
const pointsOf = (link, joints, bands) => {
  const { upper, lower } = link, bottom = bands.get(upper)[1], top = bands.get(lower)[0];
  let x = upper.x + link.upperAt;
  let points = [[x, upper.y + upper.height], [x, bottom]];
  if (link.isBack && upper.isOpen) {
    const left = upper.x - BESIDE, above = upper.y - BESIDE;
    points = [[x, upper.y], [x, above], [left, above], [left, bottom]];
  }
  for (const joint of joints) {
    const middle = joint.x + joint.width / 2;
    points.push([middle, bands.get(joint)[0]], [middle, bands.get(joint)[1]]);
  }
  x = lower.x + link.lowerAt;
  if (link.isBack && lower.isOpen) {
    const left = lower.x - BESIDE, end = lower.y + lower.height;
    points.push([left, top], [left, end + BESIDE], [x, end + BESIDE], [x, end]);
  } else points.push([x, top], [x, lower.y]);
  return points.filter(([px, py], at) => !at || px !== points[at - 1][0] || py !== points[at - 1][1]);
};

// Give boxes their places and links their points; the width and height of it all.
const layOut = (boxes, links) => {
  const linked = new Set(links.flatMap((link) => [link.upper, link.lower]));
  const layers = new Layers(boxes.filter((box) => linked.has(box)), links);
  placeInRows(layers);
  let left = Infinity, width = 0;
  for (const row of layers.rows) for (const box of row) left = Math.min(left, box.x);
  for (const row of layers.rows) {
    for (const box of row) {
      box.x -= left;
      width = Math.max(width, box.x + box.width);
    }
  }
  const rest = wrapped(boxes.filter((box) => !linked.has(box)), Math.max(width, NARROWEST));
  const height = placeRows([...layers.rows, ...rest]);
  const bands = new Map();
  for (const row of layers.rows) {
    let top = Infinity, bottom = -Infinity;
    for (const box of row) {
      top = Math.min(top, box.y);
      bottom = Math.max(bottom, box.y + box.height);
    }
    for (const box of row) bands.set(box, [top, bottom]);
  }
  for (const link of links) link.points = pointsOf(link, layers.chains.get(link), bands);
  for (const row of rest) width = Math.max(width, row.at(-1).x + row.at(-1).width);
  return [width, height];
};
