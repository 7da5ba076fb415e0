import { serveTasks } from '../task-pool.js';
import { runSeeds } from './seeds.js';

serveTasks(runSeeds);
