import { readdirSync, readFileSync } from 'node:fs';
import { type Request, Router } from 'express';
import { sourcePath } from '../base/source-path.cjs';
import { html, type Html } from './layout/html.js';
import { type DashboardSite, layout, type Site } from './layout/layout.js';

/** The runbooks of this version, so that a page's link works at night, on the host that shows the trouble. */

const FOLDER = '../docs/runbooks';
const INDEX = 'README';

/** By name. Empty where the package was installed without its documents. */
const PAGES = readPages();

function readPages(): ReadonlyMap<string, string> {
  try {
    const files = readdirSync(sourcePath(FOLDER)).filter((file) => file.endsWith('.md'));
    const read = (file: string): string => readFileSync(sourcePath(`${FOLDER}/${file}`), 'utf8');
    return new Map(files.map((file) => [file.slice(0, -'.md'.length), read(file)]));
  } catch {
    return new Map();
  }
}

/** @param path - as headlines name it, such as `docs/runbooks/paused.md` */
export function runbookLink({ root }: DashboardSite, path: string): Html {
  const name = /([\w-]+)\.md$/.exec(path)?.[1] ?? '';
  return html`<p class="quiet">
    Runbook: ${PAGES.has(name) ? html`<a href="${root}/runbooks/${name}">${path}</a>` : path}
  </p>`;
}

export function createRunbooks(toSite: (request: Request) => DashboardSite | Site): Router {
  const router = Router();
  router.get(['/runbooks', '/runbooks/:name'], (request, response, next) => {
    const { name = INDEX } = request.params as { readonly name?: string };
    const text = PAGES.get(name);
    if (text === undefined) {
      next();
      return;
    }
    const site = toSite(request);
    const title = /^# (.*)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? name;
    response.send(layout(site, { title }, html`<article class="card runbook">${toHtml(text, site)}</article>`));
  });
  return router;
}

/** The Markdown that the runbooks use: headings, paragraphs, lists of two levels, blocks of commands. */
function toHtml(text: string, site: DashboardSite): Html[] {
  const blocks = text.split(/^```\w*\n(.*?)^```$/ms);
  return blocks.flatMap((block, index) =>
    index % 2 === 1 ? [html`<pre tabindex="0"><code>${block}</code></pre>`] : toBlocks(block, site),
  );
}

function toBlocks(text: string, site: DashboardSite): Html[] {
  const shown: Html[] = [];
  let items: { readonly words: string; readonly under: string[] }[] = [];
  const endList = (): void => {
    if (items.length === 0) return;
    const list = (all: readonly string[]): Html | undefined =>
      all.length === 0
        ? undefined
        : html`<ul>
            ${all.map((words) => html`<li>${inline(words, site)}</li>`)}
          </ul>`;
    shown.push(
      html`<ul>
        ${items.map(({ words, under }) => html`<li>${inline(words, site)}${list(under)}</li>`)}
      </ul>`,
    );
    items = [];
  };
  for (const line of text.split('\n')) {
    const [, indent = '', words = ''] = /^( *)(?:-|\d+\.) (.*)$/.exec(line) ?? [];
    const last = items.at(-1);
    if (words !== '' && indent !== '' && last !== undefined) last.under.push(words);
    else if (words !== '') items.push({ words, under: [] });
    else if (line.trim() !== '') {
      endList();
      const [, marks = '', heading = ''] = /^(#+) (.*)$/.exec(line) ?? [];
      if (marks === '') shown.push(html`<p>${inline(line, site)}</p>`);
      else
        shown.push(marks === '#' ? html`<h1>${inline(heading, site)}</h1>` : html`<h2>${inline(heading, site)}</h2>`);
    }
  }
  endList();
  return shown;
}

const INLINE = /(`[^`]+`|\*\*.+?\*\*|\[[^\]]+\]\([^)\s]+\))/;

function inline(text: string, site: DashboardSite): Html[] {
  return text.split(INLINE).map((part) => {
    if (/^`.+`$/.test(part)) return html`<code>${part.slice(1, -1)}</code>`;
    if (/^\*\*.+\*\*$/.test(part)) return html`<strong>${inline(part.slice(2, -2), site)}</strong>`;
    const [, words, target = ''] = /^\[([^\]]+)\]\(([^)\s]+)\)$/.exec(part) ?? [];
    return words === undefined ? html`${part}` : link(words, target, site);
  });
}

/** To another runbook; other documents are named. */
function link(words: string, target: string, { root }: DashboardSite): Html {
  const name = /^([\w-]+)\.md(?:#.*)?$/.exec(target)?.[1];
  if (name === undefined || !PAGES.has(name)) return html`${words} (${target.replace(/^\.\.\//, 'docs/')})`;
  return html`<a href="${root}/runbooks${name === INDEX ? '' : `/${name}`}">${words}</a>`;
}
