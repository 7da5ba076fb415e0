/** A piece of HTML. Everything else in a page is text, and is escaped. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The values of a template: text and numbers are escaped, undefined is left out. */
type HtmlValue = Html | string | number | undefined | readonly Html[];

/** Builds HTML from a template. The only way to build a page, so no value can miss its escaping. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(String.raw({ raw: strings.map(unindent) }, ...values.map(render)));
}

function render(value: HtmlValue): string {
  if (value === undefined) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  return escapeHtml(String(value));
}

/** The indentation of the source would show inside `<pre>`. */
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
