// Fetches the page at its interval and changes only what differs: focus, selection, scroll position and open menus stay. A hidden
// page rests, but for those whose title is an alarm.

const main = document.querySelector('main');
const restsHidden = main?.dataset.pulse === undefined;
const EVERY_MS = Number(main?.dataset.live);
const GIVE_UP_AFTER_MS = EVERY_MS + 3_000;

/** One failed request may be chance. */
const STALE_AFTER_MS = EVERY_MS + 2_000;

const notice = document.querySelector('#stale');
let updatedAt = Date.now();
let isResting = false;

async function refresh() {
  isResting = restsHidden && document.hidden;
  if (isResting) return;
  try {
    // Omits a user and password of the location bar.
    const response = await fetch(location.origin + location.pathname + location.search, {
      cache: 'no-store',
      signal: AbortSignal.timeout(GIVE_UP_AFTER_MS),
    });
    if (response.status === 401) return showStale('Signed out: reload the page to sign in again.');
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    const next = page.querySelector('main[data-live]');
    if (next === null) throw new Error(`HTTP ${response.status}`);
    const focused = document.activeElement;
    update(main, next);
    // A row that moved loses it.
    if (focused !== document.activeElement && main.contains(focused)) focused.focus({ preventScroll: true });
    update(document.querySelector('#alarm'), page.querySelector('#alarm'));
    document.title = page.title;
    updatedAt = Date.now();
    notice.hidden = true;
    main.classList.remove('stale');
  } catch {
    const at = new Date(updatedAt).toISOString().slice(11, 19);
    if (Date.now() - updatedAt > STALE_AFTER_MS)
      showStale(`This page could not be refreshed: what it shows is from ${at} UTC. Still trying.`);
  }
  setTimeout(refresh, EVERY_MS);
}

function showStale(text) {
  if (notice.textContent !== text) notice.textContent = text;
  notice.hidden = false;
  main.classList.add('stale');
  if (!document.title.startsWith('Not live')) document.title = `Not live · ${document.title}`;
}

function update(element, next) {
  updateAttributes(element, next);
  const kept = new Map();
  for (const child of element.children) if (child.dataset.key !== undefined) kept.set(child.dataset.key, child);
  let present = element.firstChild;
  for (const wanted of [...next.childNodes]) {
    const keyed = wanted.dataset?.key === undefined ? undefined : kept.get(wanted.dataset.key);
    if (keyed !== undefined && keyed !== present) element.insertBefore(keyed, present);
    const match = keyed ?? present;
    if (match === null || !isAlike(match, wanted)) {
      element.insertBefore(document.importNode(wanted, true), present);
      continue;
    }
    if (match === present) present = present.nextSibling;
    updateNode(match, wanted);
  }
  while (present !== null) {
    const following = present.nextSibling;
    present.remove();
    present = following;
  }
}

function isAlike(node, wanted) {
  const isSame = node.nodeType === wanted.nodeType && node.nodeName === wanted.nodeName;
  if (!isSame || node.nodeType !== Node.ELEMENT_NODE) return isSame;
  // Not `node.id`: of a form that is its field with the name `id`.
  return ['id', 'data-key'].every((name) => node.getAttribute(name) === wanted.getAttribute(name));
}

function updateNode(node, wanted) {
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (node.nodeValue !== wanted.nodeValue) node.nodeValue = wanted.nodeValue;
    return;
  }
  // The text may be the reader's local time.
  if (node.matches('time.utc') && node.dateTime === wanted.dateTime) return;
  update(node, wanted);
}

/** Keeps what the reader opened and other scripts added. */
function updateAttributes(element, next) {
  for (const { name, value } of next.attributes) {
    if (name !== 'open' && element.getAttribute(name) !== value) element.setAttribute(name, value);
  }
  for (const { name } of [...element.attributes]) {
    const isOwn = name === 'open' || (name === 'title' && element.matches('time'));
    if (!isOwn && !next.hasAttribute(name)) element.removeAttribute(name);
  }
}

if (main !== null && notice !== null) {
  setTimeout(refresh, EVERY_MS);
  document.addEventListener('visibilitychange', () => {
    if (isResting && !document.hidden) void refresh();
  });
}
