import { z } from 'zod';
import { wholeNumberField } from '../fields.js';

/** Rules that settings of several sections share. */

const HIGHEST_PORT = 65_535;

export const port = wholeNumberField(0, HIGHEST_PORT);

export const text = z.string().min(1, 'must not be empty');

export const flag = z.boolean({ error: 'must be true or false' });
