/** A piece of HTML. Every other value in a page is escaped text. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Text and numbers are escaped; undefined and false are omitted. */
export type HtmlValue = Html | string | number | undefined | false | readonly Html[];

/** Builds HTML from a template. Pages have no other way, so every value is escaped. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(String.raw({ raw: strings.map(unindent) }, ...values.map(render)));
}

function render(value: HtmlValue): string {
  if (value === undefined || value === false) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  return escapeHtml(String(value));
}

/** The source's indentation would show inside `<pre>`. */
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
