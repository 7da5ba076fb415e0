// Copy buttons, `/` for the search, and local times; pages work without it. Listeners on the document also cover content that is exchanged later.

const root = document.documentElement;
root.classList.add('scripted');

const status = document.createElement('p');
status.className = 'unseen';
status.setAttribute('role', 'status');
document.body.append(status);

document.addEventListener('click', (event) => {
  const button = event.target instanceof Element ? event.target.closest('button[data-copy]') : null;
  if (button === null) return;
  void copy(button.dataset.copy).then((isCopied) => {
    button.dataset.note = isCopied ? 'copied' : 'select it instead';
    // Emptied first, so that a screen reader repeats the same text.
    status.textContent = '';
    setTimeout(() => (status.textContent = isCopied ? 'Copied' : 'Could not copy: select the text instead'), 50);
    setTimeout(() => delete button.dataset.note, 1_500);
  });
});

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain HTTP a browser has no clipboard, but may still copy a selection.
    return copySelection(text);
  }
}

function copySelection(text) {
  const focused = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'unseen';
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}

// `/` goes to the search, unless something is being typed.
document.addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof Element && event.target.matches('input, select, textarea');
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  const search = document.querySelector('input[type=search]');
  if (search === null) return;
  event.preventDefault();
  search.focus();
});

// Times in UTC with the local time as a tooltip, or the reverse

const KEY = 'payouts-local-times';
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const two = '2-digit';
const local = new Intl.DateTimeFormat('sv-SE', {
  ...{ year: 'numeric', month: two, day: two, hour: two, minute: two, second: two },
  timeZoneName: 'shortOffset',
});
let isLocal = recall() === 'yes';

function showTimes() {
  for (const time of document.querySelectorAll('time[datetime]')) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    const utc = `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
    // `2030-01-31 08:00:00 GMT+1`: read out or copied, a time without its zone is another time.
    const own = local.format(date);
    const isExact = time.classList.contains('utc');
    const text = isLocal ? own : utc;
    // Only if it differs: each change triggers the observer below.
    if (isExact && time.textContent !== text) time.textContent = text;
    const title = isExact ? (isLocal ? utc : `${own} (${zone})`) : `${utc} = ${own} (${zone})`;
    if (time.title !== title) time.title = title;
  }
  for (const button of document.querySelectorAll('button[data-times]')) {
    button.hidden = zone === 'UTC';
    const text = isLocal ? 'Show times in UTC' : `Show times in ${zone}`;
    if (button.textContent !== text) button.textContent = text;
  }
  for (const note of document.querySelectorAll('[data-zone]')) {
    const text = isLocal ? zone : 'UTC';
    if (note.textContent !== text) note.textContent = text;
  }
}

document.addEventListener('click', (event) => {
  if (!(event.target instanceof Element) || event.target.closest('button[data-times]') === null) return;
  isLocal = !isLocal;
  remember(isLocal ? 'yes' : 'no');
  showTimes();
});

// Storage may be forbidden: then the choice is for this page only.
function recall() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function remember(choice) {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    return;
  }
}

showTimes();
new MutationObserver(showTimes).observe(document.body, { childList: true, subtree: true });
