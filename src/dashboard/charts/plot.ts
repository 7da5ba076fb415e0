import { html, type Html } from '../html.js';
import type { Range } from './time-slots.js';

/** A picture over time. */
export interface Plot {
  /** Unique in the page. */
  readonly id: string;
  readonly title: string;
  /** What the picture shows, in words, for those who do not see it. */
  readonly description: string;
  /** Beside the title: the figure that matters most now. */
  readonly current: string;
  readonly range: Range;
  /** Labels of the vertical axis at equal distances, from the top. */
  readonly scale: readonly string[];
  /** SVG in the coordinates of {@link PLOT_WIDTH} and {@link PLOT_HEIGHT}. */
  readonly shapes: readonly Html[];
}

/** The picture is stretched to the width that there is; lines keep their thickness. */
export const PLOT_WIDTH = 960;
export const PLOT_HEIGHT = 160;

const TIMES: Readonly<Record<Range, readonly string[]>> = {
  hour: ['60 min ago', '45', '30', '15', 'now'],
  day: ['24 h ago', '18', '12', '6', 'now'],
};

/** Draws it. The text around the picture is HTML: in a picture that is stretched it could not be read. */
export function drawPlot({ id, title, description, current, range, scale, shapes }: Plot): Html {
  return html`<figure class="plot">
    <figcaption>
      <h3>${title}</h3>
      <b>${current}</b>
    </figcaption>
    <div class="plot-area">
      <div class="plot-scale" aria-hidden="true">${scale.map((label) => html`<span>${label}</span>`)}</div>
      <svg
        role="img"
        aria-labelledby="${id}-title ${id}-desc"
        viewBox="0 0 ${PLOT_WIDTH} ${PLOT_HEIGHT}"
        preserveAspectRatio="none"
      >
        <title id="${id}-title">${title}</title>
        <desc id="${id}-desc">${description}</desc>
        ${drawGrid(scale.length - 1)} ${shapes}
      </svg>
      <div class="plot-times" aria-hidden="true">${TIMES[range].map((label) => html`<span>${label}</span>`)}</div>
    </div>
  </figure>`;
}

function drawGrid(parts: number): Html[] {
  return Array.from({ length: parts + 1 }, (_, index) => {
    const y = (index * PLOT_HEIGHT) / parts;
    return html`<line class="grid" x1="0" x2="${PLOT_WIDTH}" y1="${y}" y2="${y}" />`;
  });
}

/** A coordinate to a tenth: more digits would only make the page longer. */
export function toCoordinate(value: number): number {
  return Math.round(value * 10) / 10;
}
