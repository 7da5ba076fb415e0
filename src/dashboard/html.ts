/** A piece of HTML. Everything else that is put into a page is text, and is escaped. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** What may stand in a template: text and numbers are escaped, nothing is written for undefined. */
export type HtmlValue = Html | string | number | undefined | readonly Html[];

/** Makes HTML of a template. The only way to build a page, so that no value can be forgotten to be escaped. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(String.raw({ raw: strings.map(unindent) }, ...values.map(render)));
}

function render(value: HtmlValue): string {
  if (value === undefined) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  return escapeHtml(String(value));
}

/** Indentation is for those who read the source; inside `<pre>` it would show. */
function unindent(part: string): string {
  return part.replace(/\n\s*/g, '\n');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
